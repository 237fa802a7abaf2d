//===- descriptor_test.cpp - the bits of a kernel descriptor, one by one --------------------------------===//
#include "package/code_object.h"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

using namespace sluice::package;

namespace {

/// The bits of a word that form a number, lowest first: those that change it when set on their own.
std::vector<int> bits_of(int word_bits, const std::function<uint32_t(uint32_t)> &number) {
  std::vector<int> bits;
  const uint32_t none = number(0);
  for (int bit = 0; bit < word_bits; ++bit)
    if (number(1u << bit) != none) bits.push_back(bit);
  return bits;
}

template <auto member, typename Get> std::vector<int> bits(Get get) {
  using Word = std::remove_cvref_t<decltype(std::declval<KernelDescriptor>().*member)>;
  return bits_of(int(sizeof(Word) * 8), [&](uint32_t word) {
    KernelDescriptor descriptor;
    descriptor.*member = Word(word);
    return uint32_t(get(descriptor));
  });
}

using D = KernelDescriptor;
using Bits = std::vector<int>;

} // namespace

TEST_CASE("properties of a descriptor are a bit each", "[code_object]") {
  constexpr auto word = &D::properties;
  CHECK(bits<word>([](const D &d) { return d.private_segment_buffer(); }) == Bits{0});
  CHECK(bits<word>([](const D &d) { return d.dispatch_ptr(); }) == Bits{1});
  CHECK(bits<word>([](const D &d) { return d.queue_ptr(); }) == Bits{2});
  CHECK(bits<word>([](const D &d) { return d.kernarg_segment_ptr(); }) == Bits{3});
  CHECK(bits<word>([](const D &d) { return d.dispatch_id(); }) == Bits{4});
  CHECK(bits<word>([](const D &d) { return d.flat_scratch_init(); }) == Bits{5});
  CHECK(bits<word>([](const D &d) { return d.private_segment_size(); }) == Bits{6});
  CHECK(bits<word>([](const D &d) { return d.wave32(); }) == Bits{10});
  CHECK(bits<word>([](const D &d) { return d.dynamic_stack(); }) == Bits{11});
  const D none;
  CHECK_FALSE((none.private_segment_buffer() || none.dispatch_ptr() || none.queue_ptr() ||
               none.kernarg_segment_ptr() || none.dispatch_id() || none.flat_scratch_init() ||
               none.private_segment_size() || none.wave32() || none.dynamic_stack()));
}

TEST_CASE("the resource words of a descriptor", "[code_object]") {
  CHECK(bits<&D::rsrc1>([](const D &d) { return d.vgprs(); }) == Bits{0, 1, 2, 3, 4, 5});
  CHECK(bits<&D::rsrc3>([](const D &d) { return d.accum_offset(); }) == Bits{0, 1, 2, 3, 4, 5});
  CHECK(bits<&D::rsrc2>([](const D &d) { return d.private_segment(); }) == Bits{0});
  CHECK(bits<&D::rsrc2>([](const D &d) { return d.user_sgprs(); }) == Bits{1, 2, 3, 4, 5});
  for (int axis = 0; axis < 3; ++axis)
    CHECK(bits<&D::rsrc2>([&](const D &d) { return d.workgroup_id(axis); }) == Bits{7 + axis});
  CHECK(bits<&D::rsrc2>([](const D &d) { return d.workgroup_info(); }) == Bits{10});
  CHECK(bits<&D::rsrc2>([](const D &d) { return d.workitem_id(); }) == Bits{11, 12});
  CHECK(bits<&D::rsrc2>([](const D &d) { return d.exceptions(); }) ==
        Bits{13, 14, 24, 25, 26, 27, 28, 29, 30});
  CHECK(bits<&D::rsrc3>([](const D &d) { return d.split_workgroups(); }) == Bits{16});
  CHECK(bits<&D::preload>([](const D &d) { return d.preload_length(); }) == Bits{0, 1, 2, 3, 4, 5, 6});
  CHECK(bits<&D::preload>([](const D &d) { return d.preload_offset(); }) ==
        Bits{7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(bits<&D::rsrc1>([](const D &d) { return d.mode(); }) ==
        Bits{12, 13, 14, 15, 16, 17, 18, 19, 21, 23, 26});
}

TEST_CASE("numbers of a descriptor are put together in order", "[code_object]") {
  D descriptor;
  CHECK(descriptor.vgprs() == 8);
  CHECK(descriptor.accum_offset() == 4);
  descriptor.rsrc1 = 63;
  descriptor.rsrc3 = 63 | 1 << 16;
  CHECK(descriptor.vgprs() == 512);
  CHECK(descriptor.accum_offset() == 256);
  CHECK(descriptor.split_workgroups());
  descriptor.rsrc2 = 1 | 21 << 1 | 1 << 10 | 2 << 11 | 1 << 14 | 5 << 24;
  CHECK(descriptor.private_segment());
  CHECK(descriptor.user_sgprs() == 21);
  CHECK(descriptor.workgroup_info());
  CHECK(descriptor.workitem_id() == 2);
  CHECK(descriptor.exceptions() == (2 | 5 << 2));
  descriptor.rsrc1 = 0xa5 << 12 | 1 << 21;
  CHECK(descriptor.mode() == (0xa5 | 1 << 8));
  descriptor.rsrc1 = 1 << 23;
  CHECK(descriptor.mode() == 1 << 9);
  descriptor.rsrc1 = 1 << 26;
  CHECK(descriptor.mode() == 1 << 23);
  descriptor.preload = 3 | 9 << 7;
  CHECK(descriptor.preload_length() == 3);
  CHECK(descriptor.preload_offset() == 9);
  descriptor.properties = 0xffff;
  CHECK(descriptor.dynamic_stack());
  CHECK(descriptor.wave32());
}

TEST_CASE("a kernel without a description has AMDGPUUsage's defaults", "[code_object]") {
  const Kernel kernel;
  CHECK(kernel.code_bytes == 0);
  CHECK(kernel.kernarg_bytes == 0);
  CHECK(kernel.kernarg_alignment == 16);
  CHECK(kernel.lds_bytes == 0);
  CHECK(kernel.private_bytes == 0);
  CHECK(kernel.max_workgroup_size == 1024);
  CHECK(kernel.wavefront_size == 64);
  CHECK(kernel.sgpr_count == 0);
  CHECK(kernel.vgpr_count == 0);
  CHECK(kernel.agpr_count == 0);
  CHECK(kernel.sgpr_spills == 0);
  CHECK(kernel.vgpr_spills == 0);
  CHECK_FALSE(kernel.has_metadata);
  CHECK_FALSE(kernel.dynamic_stack);
}
