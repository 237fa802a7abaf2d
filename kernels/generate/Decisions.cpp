//===- Decisions.cpp - what the passes decided about a kernel -------------------------------------------===//
#include "generate/Decisions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir;

namespace sluice {
namespace {

std::string textOf(Attribute attribute) {
  if (auto string = dyn_cast<StringAttr>(attribute)) return string.str();
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

unsigned numberIn(DictionaryAttr dictionary, StringRef name) {
  auto number = dictionary.getAs<IntegerAttr>(name);
  return number ? number.getInt() : 0;
}

void print(DictionaryAttr lds, llvm::raw_ostream &out) {
  unsigned bytes = numberIn(lds, "arena_bytes"), without = numberIn(lds, "bytes_without_reuse");
  out << "  arena " << bytes << " bytes; without reuse " << without << ", saved " << without - bytes << "\n";
  if (auto tiles = lds.getAs<ArrayAttr>("tiles"))
    for (Attribute tile : tiles)
      out << "  " << textOf(tile) << "\n";
}

} // namespace

unsigned staticLdsBytes(gpu::GPUModuleOp module) {
  unsigned bytes = 0;
  for (LLVM::GlobalOp global : module.getOps<LLVM::GlobalOp>())
    if (auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType()); type && global.getAddrSpace() == 3)
      bytes += type.getNumElements();
  return bytes;
}

Decisions readDecisions(gpu::GPUModuleOp module) {
  Decisions decisions;
  decisions.ldsBytes = decisions.ldsBytesWithoutReuse = staticLdsBytes(module);
  for (LLVM::LLVMFuncOp kernel : module.getOps<LLVM::LLVMFuncOp>()) {
    if (auto loops = kernel->getAttrOfType<ArrayAttr>("sluice.pipeline"))
      for (auto loop : loops.getAsRange<DictionaryAttr>()) {
        decisions.stages = std::max(decisions.stages, numberIn(loop, "stages"));
        if (auto groups = loop.getAs<ArrayAttr>("groups"))
          for (Attribute group : groups)
            decisions.copyGroups.push_back(textOf(group));
      }
    if (auto lds = kernel->getAttrOfType<DictionaryAttr>("sluice.lds"))
      decisions.ldsBytesWithoutReuse = numberIn(lds, "bytes_without_reuse");
  }
  return decisions;
}

void printDecisions(gpu::GPUModuleOp module, llvm::raw_ostream &out) {
  out << "\n==== decisions ====\n";
  for (LLVM::LLVMFuncOp kernel : module.getOps<LLVM::LLVMFuncOp>())
    for (NamedAttribute attribute : kernel->getDiscardableAttrs())
      if (attribute.getName().strref().starts_with("sluice."))
        out << "  " << attribute.getName().strref() << " = " << attribute.getValue() << "\n";
  out << "\n==== LDS ====\n";
  for (LLVM::LLVMFuncOp kernel : module.getOps<LLVM::LLVMFuncOp>())
    if (auto lds = kernel->getAttrOfType<DictionaryAttr>("sluice.lds")) print(lds, out);
  for (LLVM::GlobalOp global : module.getOps<LLVM::GlobalOp>())
    if (global.getAddrSpace() == 3)
      out << "  " << global.getSymName() << ": " << global.getGlobalType() << "\n";
}

} // namespace sluice
