//===- main.cpp - generates text with jargon-lm, all attention on the device ----------------------------===//
//
// First the check: the logits after the prompt and the greedy bytes must be those that expected.json stores,
// which a float32 implementation of the same model computed. Then sampled text, as it appears. Then several
// prompts at once by the server, whose texts must be those of each prompt on its own with a dense cache. Then
// what ran. Ends with a status other than 0 when anything differs that may not.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention.h"
#include "model.h"
#include "yardstick.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace jargon;

constexpr float logit_tolerance = 2e-2f;
constexpr float fp8_logit_tolerance = 1.0f;

struct Options {
  std::string device = "emulated";
  std::string model = "docs/examples/jargon_lm/model";
  std::string prompt = "A hacker is ";
  std::vector<CacheType> caches = {CacheType::f16, CacheType::fp8};
  bool graph = true;
  int bytes = 600;
  float temperature = 0.7f;
  unsigned seed = 942;
};

constexpr std::string_view usage =
    R"(usage: jargon_lm [--device emulated|hip:N] [--model FOLDER] [--prompt TEXT]
                 [--bytes N] [--temperature T] [--seed N]
                 [--cache f16|fp8] [--graph on|off]     for the texts served at once;
                                                        without --cache once with each
)";

/// Whether an option's value is the second of the two it can have.
bool is_second(const std::string &name, const std::string &value, const char *first, const char *second) {
  if (value != first && value != second)
    throw std::runtime_error(name + " is '" + value + "'; it must be '" + first + "' or '" + second + "'");
  return value == second;
}

Options parse_options(int count, char **arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (i + 1 == count) throw std::runtime_error(name + " needs a value");
    const std::string value = arguments[++i];
    if (name == "--device")
      options.device = value;
    else if (name == "--model")
      options.model = value;
    else if (name == "--prompt")
      options.prompt = value;
    else if (name == "--bytes")
      options.bytes = std::stoi(value);
    else if (name == "--temperature")
      options.temperature = std::stof(value);
    else if (name == "--seed")
      options.seed = unsigned(std::stoul(value));
    else if (name == "--cache")
      options.caches = {is_second(name, value, "f16", "fp8") ? CacheType::fp8 : CacheType::f16};
    else if (name == "--graph")
      options.graph = is_second(name, value, "off", "on");
    else
      throw std::runtime_error("unknown option " + name);
  }
  if (options.prompt.empty())
    throw std::runtime_error("--prompt is empty; the model continues at least one byte");
  if (!(options.temperature > 0)) throw std::runtime_error("--temperature must be positive");
  return options;
}

void show(uint8_t byte) {
  std::putchar(byte == '\n' || (byte >= ' ' && byte < 0x7f) ? byte : '?');
  std::fflush(stdout);
}

std::span<const uint8_t> bytes_of(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// One byte with probability softmax(logits / temperature).
uint8_t sample(const std::vector<float> &logits, float temperature, std::mt19937_64 &random) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double sum = 0;
  for (float logit : logits) {
    weights.push_back(std::exp(double(logit - largest) / temperature));
    sum += weights.back();
  }
  // Not std::discrete_distribution: what that draws from given bits differs between standard libraries.
  double place = double(random() >> 11) * 0x1p-53 * sum;
  for (size_t byte = 0; byte < weights.size(); ++byte)
    if ((place -= weights[byte]) < 0) return uint8_t(byte);
  return most_likely(logits);
}

struct CheckResult {
  float logit_difference;
  size_t equal_bytes;
  size_t expected_bytes;
  bool passed() const { return logit_difference <= logit_tolerance && equal_bytes == expected_bytes; }
};

CheckResult check_greedy(const Model &model, Attention &attention, const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  const nlohmann::json expected = nlohmann::json::parse(file);
  const std::string prompt = expected.at("prompt");
  const std::string text = expected.at("greedy_text"); // the prompt and what follows it
  const auto expected_logits = expected.at("first_logits").get<std::vector<float>>();
  const size_t steps = expected.at("greedy_bytes");
  if (text.size() != prompt.size() + steps || !text.starts_with(prompt))
    throw std::runtime_error(path + ": greedy_text is not the prompt and greedy_bytes further bytes");

  CheckResult result{.logit_difference = 0, .equal_bytes = 0, .expected_bytes = steps};
  std::vector<float> logits = model.forward(bytes_of(prompt), attention);
  if (logits.size() != expected_logits.size())
    throw std::runtime_error(path + ": first_logits has a wrong length");
  for (size_t i = 0; i < logits.size(); ++i) {
    const float difference = std::fabs(logits[i] - expected_logits[i]);
    // No comparison notices a NaN.
    result.logit_difference =
        std::max(result.logit_difference, std::isnan(difference) ? INFINITY : difference);
  }
  std::fputs(prompt.c_str(), stdout);
  for (size_t step = 0; step < steps; ++step) {
    const uint8_t byte = most_likely(logits);
    show(byte);
    if (byte != uint8_t(text[prompt.size() + step])) break;
    ++result.equal_bytes;
    if (step + 1 < steps) logits = model.forward({&byte, 1}, attention);
  }
  std::putchar('\n');
  return result;
}

void write_sampled(const Model &model, Attention &attention, const Options &options) {
  std::mt19937_64 random(options.seed);
  std::fputs(options.prompt.c_str(), stdout);
  std::fflush(stdout);
  std::vector<float> logits = model.forward(bytes_of(options.prompt), attention);
  for (int i = 0; i < options.bytes; ++i) {
    const uint8_t byte = sample(logits, options.temperature, random);
    show(byte);
    if (i + 1 < options.bytes) logits = model.forward({&byte, 1}, attention);
  }
  std::putchar('\n');
}

// More prompts than places in the batch, of different lengths, and with different ends.
const std::vector<Request> served_requests = {
    {"A hacker is ", 40},
    {"The first computer bug was ", 56},
    {"foo: ", 24},
    {"In the early days of Unix, everyone who had a terminal ", 48},
    {"Real programmers ", 32},
    {"A", 44},
};

void show_served(const Request &request, const Completion &completion, const Difference &difference) {
  std::printf("| %s", request.prompt.c_str());
  for (uint8_t byte : completion.bytes)
    show(byte == '\n' ? ' ' : byte);
  std::putchar('\n');
  if (!difference.same_text())
    std::printf("  from generated byte %zu on not what a dense cache gives\n", difference.equal_bytes + 1);
}

void show_counts(const ServerCounts &counts, const ServerOptions &options) {
  std::printf("%d steps for up to %d texts at once, ", counts.steps, counts.most_at_once);
  if (counts.captures == 0)
    std::printf("each enqueued call by call");
  else
    std::printf("%d of them launches of %d captured graph%s", counts.graph_launches, counts.captures,
                counts.captures == 1 ? "" : "s");
  std::printf("; pages of %d positions handed out %d times, from a pool of %d\n", options.page_size,
              counts.pages_handed_out, options.pages);
}

/// Whether an F16 cache gives the texts that `expected` has, and an FP8 cache logits that are close.
bool serve(Device &device, const Model &model, const ServerOptions &options,
           const std::vector<Completion> &expected) {
  Server server(device, model, options);
  const std::vector<Completion> completions = server.serve(served_requests);
  size_t bytes = 0, equal_bytes = 0, equal_texts = 0;
  float largest = 0;
  for (size_t i = 0; i < completions.size(); ++i) {
    const Difference difference = compare(completions[i], expected[i]);
    show_served(served_requests[i], completions[i], difference);
    bytes += difference.bytes;
    equal_bytes += difference.equal_bytes;
    equal_texts += difference.same_text();
    largest = std::max(largest, difference.largest_logits);
  }
  const bool exact = options.cache == CacheType::f16;
  const float allowed = exact ? logit_tolerance : fp8_logit_tolerance;
  const bool passed = largest <= allowed && (!exact || equal_bytes == bytes);
  std::printf(
      "\n%zu of %zu greedy bytes and %zu of %zu texts as with a dense F16 cache; largest difference of "
      "logits %.5f, allowed %.2f: %s\n",
      equal_bytes, bytes, equal_texts, completions.size(), double(largest), double(allowed),
      passed ? "ok" : "WRONG");
  show_counts(server.counts(), options);
  return passed;
}

bool serve_all(Device &device, const Model &model, Attention &attention, const Options &options) {
  std::vector<Completion> expected;
  std::string longest;
  for (const Request &request : served_requests) {
    expected.push_back(dense_completion(model, attention, request));
    if (request.prompt.size() > longest.size()) longest = request.prompt;
  }
  bool passed = true;
  for (CacheType cache : options.caches) {
    std::printf("\n== %zu prompts served at once, with a paged %s cache\n", served_requests.size(),
                cache == CacheType::fp8 ? "FP8" : "F16");
    ServerOptions server_options{.cache = cache, .graph = options.graph};
    if (cache == CacheType::fp8) server_options.scales = measured_scales(model, attention, longest);
    passed = serve(device, model, server_options, expected) && passed;
  }
  return passed;
}

void report(const Device &device, double seconds) {
  std::printf("\n== what ran on %s\n", device.description().c_str());
  for (const auto &[kernel, runs] : device.kernel_runs())
    std::printf("kernel %-46s %6llu runs\n", kernel.c_str(), static_cast<unsigned long long>(runs));
  std::printf("a run that is captured counts once, however often its graph is launched\n");
  if (const std::optional<EmulatorCounters> counters = device.counters())
    std::printf("gfx942 instructions executed %31llu (by whole waves, of which %llu MFMA)\nwaves %54llu\n",
                static_cast<unsigned long long>(counters->wave_instructions),
                static_cast<unsigned long long>(counters->mfma_instructions),
                static_cast<unsigned long long>(counters->waves));
  std::printf("seconds %52.1f\n", seconds);
}

int run(const Options &options) {
  const auto begin = std::chrono::steady_clock::now();
  const Config config = load_config(options.model + "/config.json");
  const Model model(config, load_safetensors(options.model + "/model.safetensors"));
  Device device(options.device);
  Attention attention(device, {.layers = config.num_layers,
                               .q_heads = config.num_heads,
                               .kv_heads = config.num_kv_heads,
                               .head_dim = config.head_dim,
                               .max_positions = config.max_positions});

  std::printf("== greedy text, compared with expected.json\n");
  const CheckResult check = check_greedy(model, attention, options.model + "/expected.json");
  std::printf("\n%zu of %zu greedy bytes as expected; largest difference of the first logits %.5f, allowed "
              "%.2f: %s\n",
              check.equal_bytes, check.expected_bytes, double(check.logit_difference),
              double(logit_tolerance), check.passed() ? "ok" : "WRONG");
  if (check.passed() && options.bytes > 0) {
    std::printf("\n== text sampled at temperature %g, seed %u\n", double(options.temperature), options.seed);
    attention.clear();
    write_sampled(model, attention, options);
  }
  const bool served = check.passed() && serve_all(device, model, attention, options);
  report(device, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::printf("largest logit difference %35.5f\n", double(check.logit_difference));
  return check.passed() && served ? 0 : 1;
}

} // namespace

int main(int count, char **arguments) {
  try {
    for (int i = 1; i < count; ++i)
      if (std::string_view(arguments[i]) == "--help") {
        std::fputs(usage.data(), stdout);
        return 0;
      }
    return run(parse_options(count, arguments));
  } catch (const std::exception &error) {
    std::fflush(stdout);
    std::fprintf(stderr, "jargon_lm: %s\n", error.what());
    return 2;
  }
}
