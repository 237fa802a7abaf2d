//===- LaunchToRuntime.cpp - launches with async dependencies to launch runtime calls -------------------===//
//
// A token of gpu.launch_func and gpu.wait is a stream, a token of sluice.record_event an event. A launch
// continues the stream of its first dependency that is a stream, and waits for events of all others; without
// such a dependency it gets a new stream. First the joins become explicit: one recording for each token that
// needs it, right after the token's definition, so that the event means the token's work and nothing later:
//
//   before: %b = launch async [%a] @B             after: %b = launch async [%a] @B
//           %c = launch async @C                         %c = launch async @C
//           ...                                          %e = sluice.record_event %c
//           %d = launch async [%b, %c] @D                ...
//                                                        %d = launch async [%b, %e] @D
//
// Then each operation becomes its calls. A stream lives to the end of the block that created it, where it is
// completed and destroyed, whether or not the program waited for a token of it. An event lives to its last
// use; uses in nested regions, which may run often or never, extend it to the end of the operation in its own
// block. So all paths through structured control flow destroy exactly what they created, and nothing early.
//
// Safe direction: waiting for more than a token's work, as a continued stream does, costs time; waiting for
// less breaks the order.
//
//===----------------------------------------------------------------------------------------------------===//
#include "lowering/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace sluice {
#define GEN_PASS_DEF_LAUNCHTORUNTIME
#include "lowering/Passes.h.inc"

using namespace mlir;

namespace {

constexpr StringRef runtimePrefix = "sluiceRt";

bool isEvent(Value token) {
  return isa_and_present<RecordEventOp>(token.getDefiningOp());
}
bool isStream(Value token) {
  return isa_and_present<gpu::LaunchFuncOp, gpu::WaitOp>(token.getDefiningOp());
}

/// The launches, waits and recordings of the host, in program order. A launch with a stream as its object has
/// already been lowered elsewhere.
SmallVector<Operation *> hostOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op)) return WalkResult::skip();
    auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
    if ((launch && !launch.getAsyncObject()) || isa<gpu::WaitOp, RecordEventOp>(op)) ops.push_back(op);
    return WalkResult::advance();
  });
  return ops;
}

//===-- Checks: all before anything is changed ----------------------------------------------------------===//

gpu::BinaryOp binaryOf(gpu::LaunchFuncOp launch) {
  return SymbolTable::lookupNearestSymbolFrom<gpu::BinaryOp>(launch, launch.getKernelModuleName());
}

gpu::ObjectAttr codeObjectOf(gpu::BinaryOp binary) {
  auto object = dyn_cast<gpu::ObjectAttr>(binary.getObjectsAttr()[0]);
  bool loadable = object && (object.getFormat() == gpu::CompilationTarget::Binary ||
                             object.getFormat() == gpu::CompilationTarget::Fatbin);
  return loadable && binary.getObjectsAttr().size() == 1 ? object : gpu::ObjectAttr();
}

LogicalResult checkToken(Value token) {
  Operation *definition = token.getDefiningOp();
  for (Operation *user : token.getUsers()) {
    if (!isa<gpu::LaunchFuncOp, gpu::WaitOp, RecordEventOp>(user))
      return user->emitError() << "takes an async token, but only gpu.launch_func, gpu.wait and "
                                  "sluice.record_event can be lowered to runtime calls";
    if (!definition->getBlock()->findAncestorOpInBlock(*user))
      return user->emitError() << "takes a token of another block; tokens are lowered while control flow is "
                                  "still structured";
  }
  return success();
}

LogicalResult checkLaunch(gpu::LaunchFuncOp launch, const LLVMTypeConverter &types) {
  gpu::BinaryOp binary = binaryOf(launch);
  if (!binary)
    return launch.emitError() << "launches a kernel of '" << launch.getKernelModuleName().getValue()
                              << "', which is not compiled: a gpu.binary is expected";
  if (!codeObjectOf(binary))
    return launch.emitError() << "needs a gpu.binary with exactly one object, compiled to a binary or a fat "
                                 "binary";
  if (launch.hasClusterSize()) return launch.emitError() << "has clusters, which AMD GPUs do not have";
  for (Value operand : launch.getKernelOperands())
    if (!types.convertType(operand.getType()))
      return launch.emitError() << "has an argument of type " << operand.getType()
                                << ", which has no form in LLVM";
  return success();
}

LogicalResult check(ModuleOp module, ArrayRef<Operation *> ops, const LLVMTypeConverter &types) {
  if (!ops.empty())
    for (auto symbol : module.getOps<SymbolOpInterface>())
      if (symbol.getName().starts_with(runtimePrefix))
        return symbol.emitError() << "has a name of the launch runtime";
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (isa<gpu::AsyncTokenType>(operand.getType()) && !isStream(operand) && !isEvent(operand))
        return op->emitError() << "takes a token that no gpu.launch_func, gpu.wait or sluice.record_event "
                                  "defines: whether it is a stream or an event is not known";
    for (Value result : op->getResults())
      if (failed(checkToken(result))) return failure();
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op); launch && failed(checkLaunch(launch, types)))
      return failure();
  }
  return success();
}

//===-- Joins -------------------------------------------------------------------------------------------===//

/// Leaves each launch with at most one stream among its dependencies, which comes first, and each
/// asynchronous wait with none.
class JoinMaker {
public:
  void run(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
        SmallVector<Value> joined = join(launch.getAsyncDependencies(), /*continuesStream=*/true);
        if (Value token = launch.getAsyncToken()) {
          Value origin = !joined.empty() && isStream(joined[0]) ? origins.lookup(joined[0]) : token;
          origins[token] = origin;
        }
        launch.getAsyncDependenciesMutable().assign(joined);
      } else if (auto wait = dyn_cast<gpu::WaitOp>(op); wait && wait.getAsyncToken()) {
        wait.getAsyncDependenciesMutable().assign(
            join(wait.getAsyncDependencies(), /*continuesStream=*/false));
        origins[wait.getAsyncToken()] = wait.getAsyncToken();
      }
    }
  }

private:
  SmallVector<Value> join(OperandRange dependencies, bool continuesStream) {
    SmallVector<Value> streams(llvm::make_filter_range(dependencies, isStream));
    llvm::SetVector<Value> joined;
    Value primary = continuesStream && !streams.empty() ? streams[0] : Value();
    if (primary) joined.insert(primary);
    for (Value dependency : dependencies) {
      // The stream itself orders work that it was given earlier.
      if (primary && isStream(dependency) && origins.lookup(dependency) == origins.lookup(primary)) continue;
      joined.insert(isStream(dependency) ? eventOf(dependency) : dependency);
    }
    return joined.takeVector();
  }

  Value eventOf(Value stream) {
    Value &event = events[stream];
    if (!event) {
      OpBuilder builder(stream.getContext());
      builder.setInsertionPointAfterValue(stream);
      event = RecordEventOp::create(builder, stream.getLoc(), stream.getType(), stream);
    }
    return event;
  }

  llvm::DenseMap<Value, Value> origins; // the token that came with the stream's creation
  llvm::DenseMap<Value, Value> events;
};

//===-- Calls -------------------------------------------------------------------------------------------===//

class CallMaker {
public:
  CallMaker(ModuleOp module, const LLVMTypeConverter &types)
      : module(module), types(types), symbols(module), builder(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {}

  void run(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      location = op->getLoc();
      builder.setInsertionPoint(op);
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
        lower(launch);
      else if (auto wait = dyn_cast<gpu::WaitOp>(op))
        lower(wait);
      else
        lower(cast<RecordEventOp>(op));
    }
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    for (gpu::BinaryOp binary : launched)
      embed(binary);
  }

private:
  void lower(gpu::LaunchFuncOp launch) {
    OperandRange dependencies = launch.getAsyncDependencies();
    bool continues = !dependencies.empty() && isStream(dependencies[0]);
    Value stream = continues ? lowered[dependencies[0]] : createStream(launch);
    waitForEvents(stream, dependencies.drop_front(continues));

    gpu::KernelDim3 grid = launch.getGridSizeOperandValues(), block = launch.getBlockSizeOperandValues();
    Value ldsBytes = launch.getDynamicSharedMemorySize();
    if (!ldsBytes) ldsBytes = LLVM::ConstantOp::create(builder, location, builder.getI32IntegerAttr(0));
    call("sluiceRtLaunch",
         {codeObject(launch), kernelName(launch), extent(grid.x), extent(grid.y), extent(grid.z),
          extent(block.x), extent(block.y), extent(block.z), ldsBytes, stream, parameters(launch)});
    if (launch.getAsyncToken())
      lowered[launch.getAsyncToken()] = stream;
    else
      call("sluiceRtStreamSynchronize", {stream});
  }

  void lower(gpu::WaitOp wait) {
    if (wait.getAsyncToken()) {
      Value stream = createStream(wait);
      waitForEvents(stream, wait.getAsyncDependencies());
      lowered[wait.getAsyncToken()] = stream;
      return;
    }
    for (Value token : wait.getAsyncDependencies())
      call(isEvent(token) ? "sluiceRtEventSynchronize" : "sluiceRtStreamSynchronize", {lowered[token]});
  }

  void lower(RecordEventOp record) {
    Value event = call("sluiceRtEventCreate", {}, pointer);
    call("sluiceRtEventRecord", {event, lowered[record.getToken()]});
    lowered[record.getEvent()] = event;

    Operation *last = record;
    for (Operation *user : record.getEvent().getUsers()) {
      Operation *ancestor = record->getBlock()->findAncestorOpInBlock(*user);
      if (last->isBeforeInBlock(ancestor)) last = ancestor;
    }
    builder.setInsertionPointAfter(last);
    call("sluiceRtEventDestroy", {event});
  }

  /// A stream for `op`, destroyed at the end of its block.
  Value createStream(Operation *op) {
    Value stream = call("sluiceRtStreamCreate", {}, pointer);
    OpBuilder::InsertionGuard guard(builder);
    Block *block = op->getBlock();
    if (block->mightHaveTerminator())
      builder.setInsertionPoint(block->getTerminator());
    else
      builder.setInsertionPointToEnd(block);
    call("sluiceRtStreamDestroy", {stream});
    return stream;
  }

  void waitForEvents(Value stream, OperandRange events) {
    for (Value event : events)
      call("sluiceRtStreamWaitEvent", {stream, lowered[event]});
  }

  Value extent(Value value) {
    if (value.getType().isIndex())
      return arith::IndexCastUIOp::create(builder, location, builder.getI64Type(), value);
    if (value.getType().isInteger(64)) return value;
    return arith::ExtUIOp::create(builder, location, builder.getI64Type(), value);
  }

  Value codeObject(gpu::LaunchFuncOp launch) {
    gpu::BinaryOp binary = binaryOf(launch);
    launched.insert(binary);
    return LLVM::AddressOfOp::create(builder, location, pointer, binary.getSymName());
  }

  Value kernelName(gpu::LaunchFuncOp launch) {
    LLVM::GlobalOp &name = names[launch.getKernelName()];
    if (!name) {
      std::string text = launch.getKernelName().getValue().str();
      name = addConstant("kernel_name_" + text, text + '\0', /*alignment=*/1);
    }
    return LLVM::AddressOfOp::create(builder, location, name);
  }

  /// The address of an array of the addresses of the kernel's arguments: memrefs are their descriptor's
  /// fields. The memory is the function's, so that a loop does not let the stack grow.
  Value parameters(gpu::LaunchFuncOp launch) {
    SmallVector<Value> converted;
    for (Value operand : launch.getKernelOperands()) {
      Type type = types.convertType(operand.getType());
      if (type != operand.getType())
        operand = UnrealizedConversionCastOp::create(builder, location, type, operand).getResult(0);
      converted.push_back(operand);
    }
    SmallVector<Value> arguments =
        types.promoteOperands(location, launch.getKernelOperands(), converted, builder);
    if (arguments.empty()) return LLVM::ZeroOp::create(builder, location, pointer);
    Type block = LLVM::LLVMStructType::getLiteral(module.getContext(),
                                                  llvm::to_vector(ValueRange(arguments).getTypes()));
    Value storage = allocate(launch, block, 1);
    Value addresses = allocate(launch, pointer, arguments.size());
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      Value field = LLVM::GEPOp::create(builder, location, pointer, block, storage,
                                        ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
      LLVM::StoreOp::create(builder, location, argument, field);
      Value address = LLVM::GEPOp::create(builder, location, pointer, pointer, addresses,
                                          ArrayRef<LLVM::GEPArg>{int32_t(i)});
      LLVM::StoreOp::create(builder, location, field, address);
    }
    return addresses;
  }

  Value allocate(Operation *op, Type type, size_t count) {
    OpBuilder::InsertionGuard guard(builder);
    if (auto function = op->getParentOfType<FunctionOpInterface>())
      builder.setInsertionPointToStart(&function.getFunctionBody().front());
    Value size = LLVM::ConstantOp::create(builder, location, builder.getI64IntegerAttr(int64_t(count)));
    return LLVM::AllocaOp::create(builder, location, pointer, type, size);
  }

  /// The code object takes the place and the name of its gpu.binary.
  void embed(gpu::BinaryOp binary) {
    std::string name = binary.getSymName().str();
    std::string bytes = codeObjectOf(binary).getObject().getValue().str();
    symbols.erase(binary);
    constexpr unsigned page = 4096; // the alignment that HIP's own compiler gives code objects
    addConstant(name, bytes, page);
  }

  LLVM::GlobalOp addConstant(const Twine &name, StringRef bytes, unsigned alignment) {
    OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
    auto global =
        LLVM::GlobalOp::create(atStart, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                               name.str(), builder.getStringAttr(bytes), alignment);
    symbols.insert(global);
    return global;
  }

  Value call(StringRef name, ArrayRef<Value> arguments, Type result = {}) {
    SmallVector<Type> parameters(ValueRange(arguments).getTypes());
    LLVM::LLVMFuncOp function = *LLVM::lookupOrCreateFn(
        builder, module, name, parameters, result ? result : LLVM::LLVMVoidType::get(module.getContext()));
    auto made = LLVM::CallOp::create(builder, location, function, arguments);
    return result ? made.getResult() : Value();
  }

  ModuleOp module;
  const LLVMTypeConverter &types;
  SymbolTable symbols;
  OpBuilder builder;
  Type pointer;
  Location location = builder.getUnknownLoc(); // of the operation being lowered
  llvm::DenseMap<Value, Value> lowered;        // tokens to streams and events
  llvm::DenseMap<StringAttr, LLVM::GlobalOp> names;
  llvm::SetVector<gpu::BinaryOp> launched;
};

struct LaunchToRuntimePass : impl::LaunchToRuntimeBase<LaunchToRuntimePass> {
  void runOnOperation() override {
    LLVMTypeConverter types(&getContext());
    SmallVector<Operation *> ops = hostOps(getOperation());
    if (failed(check(getOperation(), ops, types))) return signalPassFailure();
    JoinMaker().run(ops);
    CallMaker(getOperation(), types).run(hostOps(getOperation()));
  }
};

} // namespace
} // namespace sluice
