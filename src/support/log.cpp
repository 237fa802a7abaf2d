//===- log.cpp - the process's log ----------------------------------------------------------------------===//
#include "support/log.h"

#include <atomic>
#include <mutex>

namespace sluice::support {
namespace {

std::mutex mutex;
LogFunction log_function = nullptr;
void *log_user = nullptr;
std::atomic<uint32_t> log_max_level = 0;

} // namespace

void set_log(LogFunction function, void *user, uint32_t max_level) {
  std::lock_guard lock(mutex);
  log_function = function;
  log_user = user;
  log_max_level = function != nullptr ? max_level : 0;
}

bool logs(LogLevel level) {
  return uint32_t(level) <= log_max_level.load(std::memory_order_relaxed);
}

void log(LogLevel level, const std::string &message) {
  if (!logs(level)) return;
  std::lock_guard lock(mutex);
  if (log_function != nullptr && uint32_t(level) <= log_max_level) {
    log_function(uint32_t(level), message.c_str(), log_user);
  }
}

} // namespace sluice::support
