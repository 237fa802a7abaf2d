//===- features_command.cpp - sluice features: the features of the library ------------------------------===//

#include "tools/sluice/commands.h"
#include "tools/sluice/support_tables.h"

#include <fmt/format.h>

namespace sluice::tools {

int features_command(const FeaturesOptions &options) {
  fmt::print("{}", feature_tables(make_context(options.device).get()));
  return 0;
}

} // namespace sluice::tools
