//===- serving.h - continues many texts at once ---------------------------------------------------------===//
//
// A server has a batch of a few places and a pool of pages. Requests wait until a place is empty and there
// are pages enough. Each step runs the model once for everyone in the batch: a prompt as a whole for who is
// new, one byte for who is not. A text that is complete leaves the batch, and its pages go to the next one.
//
// Steps in which all have one byte are the same work again and again, on other numbers: they are captured as
// a graph, once, and launched from then on. The host's part of the model is in the graph too.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "model.h"
#include "paged_attention.h"

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace jargon {

struct ServerOptions {
  int max_batch = 4;
  int max_prompt = 64;  // bytes
  int max_length = 256; // bytes of prompt and continuation
  int page_size = 16;
  int pages = 20;
  CacheType cache = CacheType::f16;
  CacheScales scales = {}; // of an FP8 cache
  bool graph = true;
};

struct Request {
  std::string prompt;
  int bytes; // to continue it with, each the most likely one
};

struct Completion {
  std::vector<uint8_t> bytes;
  std::vector<std::vector<float>> logits; // that the bytes were chosen from
};

struct ServerCounts {
  int steps = 0;          // with a prompt or without
  int graph_launches = 0; // steps that a graph was launched for
  int captures = 0;
  int most_at_once = 0;     // sequences in a step
  int pages_handed_out = 0; // more than the pool has where pages served one after the other
};

class Server {
public:
  Server(Device &device, const Model &model, const ServerOptions &options);
  Server(const Server &) = delete; // the graph holds its address
  Server &operator=(const Server &) = delete;

  /// Serves all requests; completions are in their order. Throws std::runtime_error for a request that can
  /// never be served, before any is.
  std::vector<Completion> serve(std::span<const Request> requests);

  const ServerCounts &counts() const { return counted; }

private:
  /// A place in the batch. Without a completion it is empty.
  struct Place {
    Completion *completion = nullptr;
    size_t bytes = 0;             // that it wants
    std::vector<uint8_t> pending; // bytes that the next step starts with
    int length = 0;               // positions in the cache
    std::vector<int32_t> pages;
  };
  /// The arguments of a function on the host, at an address that stays.
  struct HostTask {
    Server *server;
    int layer;
  };

  void check(const Request &request) const;
  int pages_of(int length) const { return (length + options.page_size - 1) / options.page_size; }
  void admit(std::deque<std::pair<const Request *, Completion *>> &waiting);
  void prepare_step();
  /// There are at most `rows` rows, and `rows_each` of one place.
  void enqueue_step(int rows, int rows_each);
  void project(int layer);
  void complete(int layer);
  void take_results();

  const Model &model;
  ServerOptions options;
  PagedAttention attention;
  Stream stream;
  std::vector<HostTask> tasks; // by layer
  std::unique_ptr<Graph> decode;

  std::vector<Place> places;
  std::vector<int32_t> free_pages;
  int promised_pages = 0; // free ones that texts in the batch may still come to need
  ServerCounts counted;

  // The step that runs.
  std::vector<uint8_t> bytes;
  std::vector<int32_t> positions; // of the bytes
  int longest = 0;                // bytes of one place
  std::vector<float> x;           // activations
};

} // namespace jargon
