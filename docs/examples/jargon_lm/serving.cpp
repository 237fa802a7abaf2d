//===- serving.cpp - continues many texts at once -------------------------------------------------------===//

#include "serving.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace jargon {

namespace {

/// Throws std::runtime_error for options that no server can have.
PagedShape shape_of(const Config &model, const ServerOptions &options) {
  const std::pair<const char *, int> counts[] = {{"max_batch", options.max_batch},
                                                 {"max_prompt", options.max_prompt},
                                                 {"max_length", options.max_length},
                                                 {"page_size", options.page_size},
                                                 {"pages", options.pages}};
  for (const auto &[name, count] : counts)
    if (count < 1)
      throw std::runtime_error(std::string(name) + " is " + std::to_string(count) +
                               "; it must be at least 1");
  if (options.max_length > model.max_positions)
    throw std::runtime_error("max_length is " + std::to_string(options.max_length) + "; the model has " +
                             std::to_string(model.max_positions) + " positions");
  return {.layers = model.num_layers,
          .q_heads = model.num_heads,
          .kv_heads = model.num_kv_heads,
          .head_dim = model.head_dim,
          .page_size = options.page_size,
          .pages = options.pages,
          .max_batch = options.max_batch,
          .max_rows = options.max_prompt,
          .max_length = options.max_length,
          .cache = options.cache};
}

void to_halves(std::span<const float> values, std::span<Half> halves) {
  std::transform(values.begin(), values.end(), halves.begin(), to_half);
}

} // namespace

Server::Server(Device &device, const Model &model, const ServerOptions &options)
    : model(model), options(options),
      attention(device, shape_of(model.configuration(), options), options.scales), stream(device),
      places(options.max_batch), free_pages(options.pages) {
  for (int layer = 0; layer < model.configuration().num_layers; ++layer)
    tasks.push_back({this, layer});
  std::iota(free_pages.rbegin(), free_pages.rend(), 0);
}

void Server::check(const Request &request) const {
  const auto refuse = [](const char *what, int64_t value, const char *rule, int limit) {
    throw std::runtime_error(std::string("a request with ") + what + " " + std::to_string(value) + ": " +
                             rule + " " + std::to_string(limit));
  };
  const int64_t prompt = int64_t(request.prompt.size()), length = prompt + request.bytes;
  if (prompt < 1) refuse("a prompt of length", prompt, "it must be at least", 1);
  if (prompt > options.max_prompt)
    refuse("a prompt of length", prompt, "it must be at most", options.max_prompt);
  if (request.bytes < 1) refuse("bytes", request.bytes, "it must be at least", 1);
  if (length > options.max_length)
    refuse("prompt and continuation of length", length, "it must be at most", options.max_length);
  if (pages_of(int(length)) > options.pages)
    refuse("a need of pages of", pages_of(int(length)), "the pool has", options.pages);
}

std::vector<Completion> Server::serve(std::span<const Request> requests) {
  for (const Request &request : requests)
    check(request);
  std::vector<Completion> completions(requests.size());
  std::deque<std::pair<const Request *, Completion *>> waiting;
  for (size_t i = 0; i < requests.size(); ++i)
    waiting.emplace_back(&requests[i], &completions[i]);

  for (admit(waiting); std::ranges::any_of(places, &Place::completion); admit(waiting)) {
    prepare_step();
    // The first step loads the kernel that appends, which is not legal in a capture.
    if (longest == 1 && options.graph && counted.steps > 0) {
      if (!decode) {
        decode = stream.capture([&] { enqueue_step(options.max_batch, 1); });
        ++counted.captures;
      }
      stream.launch(*decode);
      ++counted.graph_launches;
    } else {
      enqueue_step(int(bytes.size()), longest);
    }
    stream.synchronise();
    take_results();
    ++counted.steps;
  }
  return completions;
}

// Admits only requests whose texts cannot run out of pages: a text that has begun is finished.
void Server::admit(std::deque<std::pair<const Request *, Completion *>> &waiting) {
  for (Place &place : places) {
    if (place.completion || waiting.empty()) continue;
    const auto [request, completion] = waiting.front();
    const int needed = pages_of(int(request->prompt.size()) + request->bytes);
    if (needed > int(free_pages.size()) - promised_pages) return;
    promised_pages += needed;
    place.completion = completion;
    place.bytes = request->bytes;
    place.pending.assign(request->prompt.begin(), request->prompt.end());
    waiting.pop_front();
  }
}

// Gives everyone the pages that the pending bytes need, and writes the step's numbers where the device gets
// them from. An empty place has no rows and no keys.
void Server::prepare_step() {
  bytes.clear();
  positions.clear();
  longest = 0;
  int present = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    Place &place = places[i];
    attention.starts.host()[i] = int32_t(bytes.size());
    for (uint8_t byte : place.pending) {
      bytes.push_back(byte);
      positions.push_back(place.length++);
    }
    while (int(place.pages.size()) < pages_of(place.length)) {
      attention.table.host()[i * pages_of(options.max_length) + place.pages.size()] = free_pages.back();
      place.pages.push_back(free_pages.back());
      free_pages.pop_back();
      --promised_pages;
      ++counted.pages_handed_out;
    }
    attention.lengths.host()[i] = place.length;
    longest = std::max(longest, int(place.pending.size()));
    present += place.completion != nullptr;
  }
  attention.starts.host()[places.size()] = int32_t(bytes.size());
  counted.most_at_once = std::max(counted.most_at_once, present);
  x = model.embedded(bytes);
}

// The same lines for a step that runs now and for one that is captured: nothing here looks at the step's
// bytes.
void Server::enqueue_step(int rows, int rows_each) {
  attention.enqueue_step(stream);
  for (HostTask &task : tasks) {
    stream.run_on_host(
        [](void *user) {
          const HostTask &task = *static_cast<HostTask *>(user);
          task.server->project(task.layer);
        },
        &task);
    attention.enqueue_layer(stream, task.layer, rows, rows_each);
    stream.run_on_host(
        [](void *user) {
          const HostTask &task = *static_cast<HostTask *>(user);
          task.server->complete(task.layer);
        },
        &task);
  }
}

void Server::project(int layer) {
  const Projections made = model.project(layer, x, positions);
  to_halves(made.q, attention.q.host());
  to_halves(made.k, attention.k.host());
  to_halves(made.v, attention.v.host());
}

void Server::complete(int layer) {
  const Config &config = model.configuration();
  std::vector<float> heads(bytes.size() * config.num_heads * config.head_dim);
  const std::span<const Half> halves = attention.o.host().first(heads.size());
  std::transform(halves.begin(), halves.end(), heads.begin(), to_float);
  model.complete(layer, heads, x);
}

// The last row of each sequence says what comes next.
void Server::take_results() {
  const size_t hidden = model.configuration().hidden_size;
  for (size_t i = 0; i < places.size(); ++i) {
    Place &place = places[i];
    if (!place.completion) continue;
    const size_t row = attention.starts.host()[i + 1] - 1;
    std::vector<float> logits = model.logits(std::span<const float>(x).subspan(row * hidden, hidden));
    const uint8_t byte = most_likely(logits);
    place.completion->bytes.push_back(byte);
    place.completion->logits.push_back(std::move(logits));
    place.pending.assign(1, byte);
    if (place.completion->bytes.size() < place.bytes) continue;
    // The last byte was never put into the cache: a page may have been promised and not be needed.
    promised_pages -= pages_of(place.length + 1) - int(place.pages.size());
    free_pages.insert(free_pages.end(), place.pages.begin(), place.pages.end());
    place = Place{};
  }
}

} // namespace jargon
