//===- generate.cpp - a text by llama.cpp: the most likely token, one after the other ------------------===//
//
// A program of llama.cpp like any other: it knows nothing of Sluice but a function that it may find in a
// backend, to say afterwards who computed attention.
//
//===----------------------------------------------------------------------------------------------------===//

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <llama.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
  void operator()(llama_model *model) const { llama_model_free(model); }
  void operator()(llama_context *context) const { llama_free(context); }
};

void log_what_is_wrong(ggml_log_level level, const char *text, void *) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

std::vector<llama_token> tokens_of(const llama_vocab *vocab, const std::string &text) {
  std::vector<llama_token> tokens(text.size() + 8);
  const int count =
      llama_tokenize(vocab, text.data(), int(text.size()), tokens.data(), int(tokens.size()), true, false);
  if (count < 1) throw std::runtime_error("the prompt has no tokens");
  tokens.resize(count);
  return tokens;
}

std::string text_of(const llama_vocab *vocab, llama_token token) {
  char piece[64];
  const int size = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
  if (size < 0) throw std::runtime_error("a token has more than 64 bytes");
  return std::string(piece, size);
}

/// The most likely token after these, which join the cache.
llama_token next_token(llama_context *context, std::vector<llama_token> &tokens, int vocab_size) {
  if (const int status = llama_decode(context, llama_batch_get_one(tokens.data(), int(tokens.size()))))
    throw std::runtime_error("llama_decode returned " + std::to_string(status));
  const float *const logits = llama_get_logits_ith(context, -1);
  return llama_token(std::max_element(logits, logits + vocab_size) - logits);
}

/// F16 and the blocks of 32 that a cache can be of.
ggml_type cache_type_named(const std::string &name) {
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0})
    if (name == ggml_type_name(type)) return type;
  throw std::runtime_error("the cache's type is '" + name + "'; it must be f16, q8_0 or q4_0");
}

void generate(const char *path, const std::string &prompt, int count, ggml_type cache_type) {
  ggml_backend_load_all(); // also the backend that GGML_BACKEND_PATH names
  const std::unique_ptr<llama_model, Free> model(
      llama_model_load_from_file(path, llama_model_default_params()));
  if (!model) throw std::runtime_error(std::string(path) + " cannot be loaded");
  const llama_vocab *const vocab = llama_model_get_vocab(model.get());
  std::vector<llama_token> tokens = tokens_of(vocab, prompt);

  llama_context_params params = llama_context_default_params();
  params.n_ctx = uint32_t(tokens.size()) + uint32_t(count);
  params.n_batch = params.n_ctx;
  params.type_k = params.type_v = cache_type;    // -ctk and -ctv of llama.cpp's own tools
  params.n_threads = params.n_threads_batch = 1; // of a model this small, threads mostly wait for each other
  // Where it is not asked for, llama.cpp has no attention node if another device than the layer's would
  // compute it.
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
  if (!context) throw std::runtime_error("llama.cpp makes no context");

  std::fputs(prompt.c_str(), stdout);
  for (int i = 0; i < count; ++i) {
    tokens = {next_token(context.get(), tokens, llama_vocab_n_tokens(vocab))};
    std::fputs(text_of(vocab, tokens[0]).c_str(), stdout);
    std::fflush(stdout);
  }
  std::fputs("\n", stdout);
}

/// Says what Sluice's backend counted, if there is one.
void report() {
  ggml_backend_reg_t const backend = ggml_backend_reg_by_name("Sluice");
  if (!backend) {
    std::fputs("attention without Sluice\n", stderr);
    return;
  }
  using Count = uint64_t(const char *);
  auto *const count =
      reinterpret_cast<Count *>(ggml_backend_reg_get_proc_address(backend, "ggml_backend_sluice_count"));
  const auto counted = [&](const char *what) { return static_cast<unsigned long long>(count(what)); };
  std::fprintf(stderr, "attention by Sluice: %llu nodes, %llu plans, %llu allocations\n", counted("nodes"),
               counted("plans"), counted("allocations"));
}

} // namespace

int main(int count, char **arguments) {
  if (count < 4 || count > 5 || std::atoi(arguments[3]) < 1) {
    std::fputs("usage: generate MODEL.gguf PROMPT TOKENS [f16|q8_0|q4_0]\n", stderr);
    return 2;
  }
  llama_log_set(log_what_is_wrong, nullptr);
  try {
    generate(arguments[1], arguments[2], std::atoi(arguments[3]),
             cache_type_named(count == 5 ? arguments[4] : "f16"));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
  report();
}
