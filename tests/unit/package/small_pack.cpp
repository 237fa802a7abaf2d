// Writes the small pack that docs/formats/pack.md explains byte by byte.
#include "package/pack_writer.h"

#include <cstdio>
#include <fstream>

using namespace sluice;

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: small_pack FILE\n");
    return 2;
  }
  package::KernelEntry entry;
  entry.name.operation = "merge_states";
  entry.name.dtype = "f32";
  entry.name.to_dtype = "f16";
  entry.threads = 256;
  entry.kernarg_bytes = 136;
  entry.kernarg_hash = 0x0123456789abcdef;
  entry.features = {"lse"};
  package::PackWriter writer("example", "22.1.8");
  const std::byte code[] = {std::byte{0x7f}, std::byte{'E'}, std::byte{'L'}, std::byte{'F'}};
  const package::ChipCode object = {"gfx942", code};
  writer.add(entry, {&object, 1});
  const std::vector<std::byte> pack = writer.finish();
  std::ofstream file(arguments[1], std::ios::binary);
  file.write(reinterpret_cast<const char *>(pack.data()), std::streamsize(pack.size()));
  file.close();
  return file ? 0 : 1;
}
