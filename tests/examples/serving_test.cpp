//===- serving_test.cpp - texts served at once with a paged cache, against single dense runs ------------===//
//
// All on the emulated device. The baseline is the dense cache of the same example, which expected.json checks
// against a float32 implementation of the model.
//
//===----------------------------------------------------------------------------------------------------===//
#include "serving.h"
#include "yardstick.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <climits>
#include <cmath>
#include <numeric>
#include <stdexcept>

using namespace jargon;
using Catch::Matchers::Contains;

namespace {

/// More requests than places; prompts of less than a page, of several, and one that exactly fills pages.
const std::vector<Request> requests = {
    {"A hacker is ", 30},
    {"The first computer bug was a moth in ", 24},
    {"foo: ", 9},
    {"1234567890123456", 20},
    {"Real programmers ", 16},
    {"A", 18},
};

class Served {
public:
  Served()
      : device("emulated"),
        model(load_config(MODEL_FOLDER "/config.json"), load_safetensors(MODEL_FOLDER "/model.safetensors")),
        attention(device, {.layers = config().num_layers,
                           .q_heads = config().num_heads,
                           .kv_heads = config().num_kv_heads,
                           .head_dim = config().head_dim,
                           .max_positions = config().max_positions}) {}

protected:
  const Config &config() const { return model.configuration(); }

  /// The completion of the request by a server with an FP8 cache, one layer after the other. Raises `largest`
  /// to the distance of a layer's result from that of an F16 cache with rounded keys and values, as a
  /// fraction of the allowed distance.
  Completion stepped_completion(const Request &request, const CacheScales &scales, double &largest);

  Device device;
  Model model;
  Attention attention;
};

/// Texts, and logits to the last bit.
void check_identical(const std::vector<Completion> &a, const std::vector<Completion> &b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("request " << i);
    CHECK(a[i].bytes == b[i].bytes);
    CHECK(a[i].logits == b[i].logits);
  }
}

/// The nearest number of E4M3FNUZ: 3 bits after the leading one, evenly spaced from 2^-7 down, at most 240.
double rounded_to_fp8(double x) {
  if (x == 0) return 0;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -7) - 3);
  return std::clamp(std::nearbyint(x / unit) * unit, -240.0, 240.0);
}

/// Rows [row, head, head_dim] as an FP8 cache stores them.
void pass_through_fp8(std::vector<float> &rows, const float *scales, int heads, int head_dim) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const double scale = scales[i / head_dim % heads];
    rows[i] = float(rounded_to_fp8(to_float(to_half(rows[i])) / scale) * scale);
  }
}

/// Powers of 2, so that scaled FP8 numbers fit an F16 cache; neighbouring heads and layers have different
/// ones.
CacheScales powers_of_two(CacheScales scales) {
  for (std::vector<float> *const kind : {&scales.k, &scales.v})
    for (size_t i = 0; i < kind->size(); ++i)
      (*kind)[i] = std::exp2(std::ceil(std::log2((*kind)[i])) + float(i % 3));
  return scales;
}

/// The largest magnitude of each head in all rows so far: [head].
void note_largest(std::vector<float> &largest, const std::vector<float> &rows, int head_dim) {
  for (size_t i = 0; i < rows.size(); ++i) {
    float &head = largest[i / head_dim % largest.size()];
    head = std::max(head, std::fabs(rows[i]));
  }
}

/// How far two results of attention with the same F16 queries and the same keys and values may be apart, as a
/// multiple of the largest |v|. Each is a mean of values, whose weights P are rounded to F16, which keeps 11
/// bits: by 2^-10 of themselves at most; weights 2^-14 below the largest and smaller, by 2^-24 of it. Each
/// result is then rounded to F16 itself. Sums and exponents in F32 add 2^-24 for each key, and for each unit
/// of the largest exponent, at most 64 in this model; scores are sums of equal products.
double allowed_distance(int keys) {
  const double weight = std::exp2(-10), smallest = std::exp2(-24), f16 = std::exp2(-11), f32 = std::exp2(-24);
  return 2 * (weight + keys * smallest + f16 + (keys + 64) * f32);
}

Completion Served::stepped_completion(const Request &request, const CacheScales &scales, double &largest) {
  const int heads = config().num_kv_heads, head_dim = config().head_dim, group = config().num_heads / heads;
  const ServerOptions options;
  PagedAttention paged(device,
                       {.layers = config().num_layers,
                        .q_heads = config().num_heads,
                        .kv_heads = heads,
                        .head_dim = head_dim,
                        .page_size = options.page_size,
                        .pages = options.pages,
                        .max_batch = 1,
                        .max_rows = options.max_prompt,
                        .max_length = options.max_length,
                        .cache = CacheType::fp8},
                       scales);
  std::iota(paged.table.host().begin(), paged.table.host().end(), 0);
  Stream stream(device);
  attention.clear();
  std::vector<std::vector<float>> largest_v(config().num_layers, std::vector<float>(heads));
  Completion completion;
  std::vector<uint8_t> bytes(request.prompt.begin(), request.prompt.end());
  for (int i = 0; i < request.bytes; ++i) {
    const int rows = int(bytes.size()), keys = attention.length() + rows;
    std::vector<int32_t> positions(rows);
    std::iota(positions.begin(), positions.end(), attention.length());
    paged.starts.host()[0] = 0;
    paged.starts.host()[1] = rows;
    paged.lengths.host()[0] = keys;
    std::vector<float> x = model.embedded(bytes);
    for (int layer = 0; layer < config().num_layers; ++layer) {
      Projections made = model.project(layer, x, positions);
      std::transform(made.q.begin(), made.q.end(), paged.q.host().begin(), to_half);
      std::transform(made.k.begin(), made.k.end(), paged.k.host().begin(), to_half);
      std::transform(made.v.begin(), made.v.end(), paged.v.host().begin(), to_half);
      paged.enqueue_step(stream);
      paged.enqueue_layer(stream, layer, rows, rows);
      stream.synchronise();
      std::vector<float> found(made.q.size());
      std::transform(found.begin(), found.end(), paged.o.host().begin(), found.begin(),
                     [](float, Half half) { return to_float(half); });

      pass_through_fp8(made.k, &scales.k[layer * heads], heads, head_dim);
      pass_through_fp8(made.v, &scales.v[layer * heads], heads, head_dim);
      note_largest(largest_v[layer], made.v, head_dim);
      const std::vector<float> rounded = attention.run(layer, rows, made.q, made.k, made.v);
      for (size_t j = 0; j < found.size(); ++j) {
        const double distance = std::fabs(double(found[j]) - rounded[j]);
        const double relative =
            distance / (allowed_distance(keys) * largest_v[layer][j / head_dim / group % heads]);
        // Comparisons do not notice a NaN.
        largest = std::isnan(relative) ? INFINITY : std::max(largest, relative);
      }
      model.complete(layer, found, x);
    }
    attention.advance(rows);
    completion.logits.push_back(model.logits(std::span<const float>(x).last(config().hidden_size)));
    bytes.assign(1, most_likely(completion.logits.back()));
    completion.bytes.push_back(bytes.front());
  }
  return completion;
}

} // namespace

TEST_CASE_METHOD(Served, "a paged cache gives the texts of a dense one", "[serving]") {
  Server server(device, model, {.pages = 9});
  const std::vector<Completion> completions = server.serve(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Difference difference = compare(completions[i], dense_completion(model, attention, requests[i]));
    CHECK(difference.bytes == size_t(requests[i].bytes));
    CHECK(difference.equal_bytes == difference.bytes);
    CHECK(difference.largest_logits <= 5e-3f);
  }
  // The first two need 3 + 4 pages and the third 1; the fourth has to wait for pages that they free.
  CHECK(server.counts().most_at_once == 3);
  CHECK(server.counts().pages_handed_out > 9);
}

TEST_CASE_METHOD(Served, "a text does not depend on the other requests", "[serving]") {
  // A plan that may use its bounds splits the last text's keys among workgroups if it is the only one of the
  // batch, but not if the batch already has four workgroups for each of 304 compute units.
  const std::vector<Request> several = {
      {"A hacker is ", 6}, {"foo: ", 3}, {"A", 5}, {std::string(270, 'x'), 4}};
  Server server(device, model, {.max_batch = 608, .max_prompt = 270, .max_length = 288, .pages = 64});
  const std::vector<Completion> together = server.serve(several);
  CHECK(server.counts().most_at_once == 4);
  Server single(device, model, {.max_batch = 1, .max_prompt = 270, .max_length = 288, .pages = 18});
  std::vector<Completion> one_by_one;
  for (const Request &request : several)
    one_by_one.push_back(single.serve({&request, 1}).front());
  CHECK(single.counts().most_at_once == 1);
  check_identical(together, one_by_one);
}

TEST_CASE_METHOD(Served, "a graph, captured once, gives the same results as single calls", "[serving]") {
  Server with(device, model, {.graph = true}), without(device, model, {.graph = false});
  const std::vector<Completion> completions = with.serve(requests);
  check_identical(completions, without.serve(requests));
  CHECK(with.counts().steps == without.counts().steps);
  CHECK(with.counts().captures == 1);
  // Four prompts begin in the first step, and another when one ends. The sixth is one byte, like the rest.
  CHECK(with.counts().graph_launches == with.counts().steps - 2);
  CHECK(without.counts().captures == 0);
  CHECK(without.counts().graph_launches == 0);

  // It also serves the next texts.
  check_identical(with.serve(requests), completions);
  CHECK(with.counts().captures == 1);
}

TEST_CASE_METHOD(Served, "a capture that fails leaves its stream of use", "[serving]") {
  Stream stream(device);
  CHECK_THROWS_WITH(stream.capture([] { throw std::runtime_error("no such layer"); }), "no such layer");
  // Waiting for a stream that is still being captured is refused.
  CHECK_NOTHROW(stream.synchronise());
}

TEST_CASE_METHOD(Served, "a prompt of one byte may come first", "[serving]") {
  const Request request{"A", 3};
  Server server(device, model, {});
  const Completion completion = server.serve({&request, 1}).front();
  CHECK(compare(completion, dense_completion(model, attention, request)).same_text());
  CHECK(server.counts().graph_launches == 2);
}

// Compared layer by layer: both kinds of cache get the output that earlier layers computed with the FP8
// cache. If each used its own layers, a key half-way between two FP8 numbers would be rounded to one here and
// to the other there, because of the last bit of an earlier F16 result, and differ by a whole step of FP8.
TEST_CASE_METHOD(Served, "an FP8 cache gives the same results as rounded keys and values", "[serving]") {
  const CacheScales scales = powers_of_two(measured_scales(model, attention, requests[1].prompt));
  Server server(device, model, {.cache = CacheType::fp8, .scales = scales});
  const std::vector<Completion> completions = server.serve(requests);
  std::vector<Completion> stepped;
  double largest = 0;
  for (const Request &request : requests)
    stepped.push_back(stepped_completion(request, scales, largest));
  CHECK(largest <= 1);
  check_identical(completions, stepped);
}

TEST_CASE_METHOD(Served, "an FP8 cache gives nearly the same results as an F16 cache", "[serving]") {
  const CacheScales scales = powers_of_two(measured_scales(model, attention, requests[1].prompt));
  Server server(device, model, {.cache = CacheType::fp8, .scales = scales});
  const std::vector<Completion> completions = server.serve(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Difference exact = compare(completions[i], dense_completion(model, attention, requests[i]));
    CHECK(exact.equal_bytes > 0);
    CHECK(exact.largest_logits <= 1);
  }
}

TEST_CASE_METHOD(Served, "scales are twice what the text needs, by layer and head", "[serving]") {
  const std::string text = "foo";
  const CacheScales scales = measured_scales(model, attention, text);
  REQUIRE(scales.k.size() == size_t(config().num_layers * config().num_kv_heads));
  REQUIRE(scales.v.size() == scales.k.size());
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  const Projections made = model.project(0, model.embedded(bytes), std::vector<int32_t>{0, 1, 2});
  const int row = config().num_kv_heads * config().head_dim;
  float largest = 0; // of V's second head in the first layer
  for (int i = 0; i < 3 * row; ++i)
    if (i % row >= config().head_dim) largest = std::max(largest, std::fabs(made.v[i]));
  CHECK(scales.v[1] == Approx(2 * largest / 240));
}

TEST_CASE_METHOD(Served, "a request that can never be served is refused before any is served", "[serving]") {
  Server server(device, model, {.max_prompt = 8, .max_length = 40, .pages = 2});
  const auto serve = [&](const Request &request) {
    const Request both[] = {{"a", 1}, request};
    server.serve(both);
  };
  CHECK_THROWS_WITH(serve({"", 1}), Contains("prompt of length 0") && Contains("at least 1"));
  CHECK_THROWS_WITH(serve({"123456789", 1}), Contains("prompt of length 9") && Contains("at most 8"));
  CHECK_THROWS_WITH(serve({"a", 0}), Contains("bytes 0") && Contains("at least 1"));
  CHECK_THROWS_WITH(serve({"a", 40}), Contains("length 41") && Contains("at most 40"));
  CHECK_THROWS_WITH(serve({"a", INT_MAX}), Contains("length 2147483648") && Contains("at most 40"));
  CHECK_THROWS_WITH(serve({"a", 32}), Contains("pages of 3") && Contains("has 2"));
  CHECK(server.counts().steps == 0);
  CHECK_NOTHROW(serve({"a", 31}));
}

TEST_CASE_METHOD(Served, "a server's options are checked", "[serving]") {
  const auto make = [&](const ServerOptions &options) { Server(device, model, options); };
  CHECK_THROWS_WITH(make({.max_batch = 0}), "max_batch is 0; it must be at least 1");
  CHECK_THROWS_WITH(make({.max_prompt = 0}), "max_prompt is 0; it must be at least 1");
  CHECK_THROWS_WITH(make({.max_length = -1}), "max_length is -1; it must be at least 1");
  CHECK_THROWS_WITH(make({.page_size = 0}), "page_size is 0; it must be at least 1");
  CHECK_THROWS_WITH(make({.pages = 0}), "pages is 0; it must be at least 1");
  CHECK_THROWS_WITH(make({.max_length = 1025}), "max_length is 1025; the model has 1024 positions");
}

TEST_CASE_METHOD(Served, "a cache that the library cannot serve is refused with the reason", "[serving]") {
  PagedShape shape{.layers = 1,
                   .q_heads = 2,
                   .kv_heads = 1,
                   .head_dim = 1024,
                   .page_size = 16,
                   .pages = 1,
                   .max_batch = 1,
                   .max_rows = 1,
                   .max_length = 16,
                   .cache = CacheType::fp8};
  CHECK_THROWS_WITH(PagedAttention(device, shape, {{1}, {1}}),
                    Contains("FP8 cache") && Contains("head_dim_qk is 1024"));
  shape.head_dim = 128;
  CHECK_THROWS_WITH(PagedAttention(device, shape, {{1}, {1, 1}}),
                    Contains("needs 1 scales") && Contains("not 1 and 2"));
}
