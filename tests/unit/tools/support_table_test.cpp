//===- support_table_test.cpp - the support table follows the pack --------------------------------------===//

#include "support/test_pack.h"
#include "tools/support_table.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::tools;

TEST_CASE("a kernel of a new head size brings its row") {
  package::PackWriter writer("test", "22.1.8");
  test::add_fake_kernel(writer, test::kernel_entry("bf16", 40, 4));
  test::add_fake_kernel(writer, test::kernel_entry("f16", 64, 4));
  const std::vector<std::byte> pack = writer.finish();
  const std::string device = "gfx942:304"; // which the description points into
  sluice_context_desc desc = describe_device(device);
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  sluice_error error = make_error();
  sluice_context *created = nullptr;
  check(sluice_context_create(&desc, &created, &error), error);
  const ContextHandle context(created);
  const std::string table = support_table(context.get());
  CHECK_THAT(table, Catch::Contains("| F16 | 64 | yes |") && Catch::Contains("| BF16 | 40 | yes |"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
}
