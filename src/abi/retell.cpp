//===- retell.cpp - failures in the words of the caller's structs ---------------------------------------===//
#include "abi/retell.h"

#include <algorithm>
#include <string>

namespace sluice::abi {
namespace {

constexpr std::string_view word_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::string_view renamed(std::string_view word, Names names) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Renamed &name) { return name.from == word; });
  return found == names.end() ? word : found->to;
}

/// Bits of several structs are in one member of the flat ones: the first bit that is named says whose.
std::string_view flags_of(std::string_view text) {
  constexpr Renamed owners[] = {{"SLUICE_MASK_", "mask.flags"},
                                {"SLUICE_SCORES_", "scores.flags"},
                                {"SLUICE_KV_", "kv.flags"},
                                {"SLUICE_ATTENTION_", "flags"}};
  const auto place = [&](const Renamed &owner) { return text.find(owner.from); };
  const Renamed &first = *std::ranges::min_element(owners, {}, place);
  return place(first) == std::string_view::npos ? "flags" : first.to;
}

std::string retold_names(std::string_view text, Names names) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find_first_of(word_characters, at), text.size());
    const size_t end = std::min(text.find_first_not_of(word_characters, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    result += text.substr(at, begin - at);
    const bool is_name = begin == 0 || word.find('_') != std::string_view::npos;
    result += is_name ? renamed(word, names) : word;
    at = end;
  }
  return result;
}

std::string retold_text(std::string_view text, Names names) {
  std::string result = retold_names(text, names);
  constexpr std::string_view flags = "flags";
  for (size_t at = 0; (at = result.find(flags, at)) != std::string::npos;) {
    const bool is_word = at == 0 || result[at - 1] == ' ';
    const std::string_view owned =
        is_word ? flags_of(std::string_view(result).substr(at + flags.size())) : flags;
    result.replace(at, flags.size(), owned);
    at += owned.size();
  }
  return result;
}

} // namespace

support::Failure retold(const support::Failure &failure, Names names) {
  std::string message = retold_text(failure.message(), names);
  std::string field = retold_names(failure.field(), names);
  if (field == "flags") field = flags_of(message);
  return {failure.status(), std::move(field), std::move(message), failure.hip_code()};
}

} // namespace sluice::abi
