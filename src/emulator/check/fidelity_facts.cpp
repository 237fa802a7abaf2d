//===- fidelity_facts.cpp - where a GPU may give other results than the machine -------------------------===//
#include "emulator/check/fidelity_facts.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace sluice::emulator {

namespace {

constexpr uint32_t register_trap_status = 3;
constexpr uint32_t register_hardware_id = 4;
constexpr uint32_t register_xcc_id = 20;
constexpr uint32_t register_performance = 21;

// The bounds of AMD's CDNA ISA manuals (VOP1 instructions); the machine rounds correctly.
constexpr Approximation one_ulp{Inexact::arithmetic,
                                "the machine rounds correctly; a GPU is within 1 ULP (CDNA ISA manual)"};
constexpr Approximation coarse_f64{
    Inexact::arithmetic, "the machine rounds correctly; a GPU is within 2^29 ULP (CDNA ISA manual)"};
constexpr Approximation no_bound{Inexact::arithmetic,
                                 "the machine rounds correctly; the CDNA ISA manual states no bound"};
constexpr Approximation division{
    Inexact::integer_division,
    "the machine rounds correctly; the CDNA ISA manual states no bound, and says that compilers correct it"};
constexpr Approximation sparse_sum{Inexact::arithmetic,
                                   "in which groups a GPU adds the products is not published"};
constexpr Approximation atomic_sum{Inexact::atomic_order,
                                   "each addition is rounded as on a GPU, but their order is one of many"};
constexpr Approximation clock{Inexact::clock, "4 clk for each instruction, by a rule; not a GPU's time"};
constexpr Approximation placement{Inexact::placement,
                                  "workgroups are assigned in turn; trap and profiling registers read as 0"};

struct Row {
  std::string_view mnemonic;
  const Approximation *approximation;
};
constexpr Row transcendentals[] = {
    {"v_cos_f16", &no_bound},        {"v_cos_f32", &no_bound},        {"v_exp_f16", &one_ulp},
    {"v_exp_f32", &one_ulp},         {"v_log_f16", &one_ulp},         {"v_log_f32", &one_ulp},
    {"v_rcp_f16", &one_ulp},         {"v_rcp_f32", &one_ulp},         {"v_rcp_f64", &coarse_f64},
    {"v_rcp_iflag_f32", &division},  {"v_rsq_f16", &one_ulp},         {"v_rsq_f32", &one_ulp},
    {"v_rsq_f64", &coarse_f64},      {"v_sin_f16", &no_bound},        {"v_sin_f32", &no_bound},
    {"v_sqrt_f16", &one_ulp},        {"v_sqrt_f32", &one_ulp},        {"v_sqrt_f64", &coarse_f64},
    {"v_exp_legacy_f32", &no_bound}, {"v_log_legacy_f32", &no_bound},
};

constexpr std::string_view inexact_names[inexact_count] = {
    "inexact arithmetic", "estimates of integer divisions", "sums of float atomics", "clocks", "placement"};
constexpr std::string_view unmodelled_names[unmodelled_count] = {"caches", "priority", "order of atomics",
                                                                 "counters"};
constexpr std::string_view unmodelled_texts[unmodelled_count] = {
    "caches hold nothing: policies and cache instructions change no value, only what the checks report",
    "priorities and sleeping do not change which wave runs next as on a GPU",
    "what an atomic returns depends on the order of waves, of which a run shows one",
    "performance counters, thread traces and messages do nothing"};

constexpr std::string_view cache_instructions[] = {
    "s_atc_probe",      "s_atc_probe_buffer", "s_dcache_discard", "s_dcache_discard_x2", "s_dcache_inv",
    "s_dcache_inv_vol", "s_dcache_wb",        "s_dcache_wb_vol",  "s_icache_inv"};
constexpr std::string_view counter_instructions[] = {"s_decperflevel", "s_incperflevel", "s_sendmsg",
                                                     "s_ttracedata"};

bool is_in(std::span<const std::string_view> list, std::string_view mnemonic) {
  return std::ranges::find(list, mnemonic) != list.end();
}

template <typename Member>
std::optional<Member> member_by_name(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return Member(found - names.begin());
}

bool adds_floats(AtomicOperation operation) {
  return operation == AtomicOperation::add_float || operation == AtomicOperation::add_f16_pair ||
         operation == AtomicOperation::add_bf16_pair;
}

bool has_cache_policy(OpKind kind) {
  return kind == OpKind::vector_memory || kind == OpKind::lds_copy;
}

} // namespace

std::string_view inexact_name(Inexact source) {
  return inexact_names[size_t(source)];
}

std::optional<Inexact> inexact_by_name(std::string_view name) {
  return member_by_name<Inexact>(inexact_names, name);
}

const Approximation *approximation_of(const Op &op, const OpInfo &info) {
  const InstructionFacts &facts = *info.facts;
  if (facts.pipe == Pipe::transcendental) {
    const Row *const row = std::ranges::find(transcendentals, facts.mnemonic, &Row::mnemonic);
    return row == std::end(transcendentals) ? &no_bound : row->approximation;
  }
  if (info.kind == OpKind::mfma) {
    const MfmaShape &shape = mfma_instructions()[facts.matrix].shape;
    return shape.sparse && shape.input != MfmaInput::i8 ? &sparse_sum : nullptr;
  }
  if (info.role() == Role::read_clock) return &clock;
  if (info.role() == Role::get_register) {
    const uint32_t number = uint32_t(op.value) & 63;
    const bool differs = number == register_trap_status || number == register_hardware_id ||
                         number == register_xcc_id || number == register_performance;
    return differs ? &placement : nullptr;
  }
  return info.is_atomic() && adds_floats(facts.data.operation) ? &atomic_sum : nullptr;
}

std::string_view unmodelled_name(Unmodelled part) {
  return unmodelled_names[size_t(part)];
}

std::optional<Unmodelled> unmodelled_by_name(std::string_view name) {
  return member_by_name<Unmodelled>(unmodelled_names, name);
}

std::string_view unmodelled_text(Unmodelled part) {
  return unmodelled_texts[size_t(part)];
}

uint8_t unmodelled_parts(const Op &op, const OpInfo &info) {
  const Role role = info.role();
  const std::string_view mnemonic = info.facts->mnemonic;
  uint8_t parts = 0;
  const auto use = [&parts](Unmodelled part) { parts |= uint8_t(1u << unsigned(part)); };
  const bool policy =
      has_cache_policy(info.kind) && !info.is_atomic() && (op.memory.sc0 || op.memory.sc1 || op.memory.nt);
  if (policy || role == Role::invalidate || role == Role::write_back || is_in(cache_instructions, mnemonic))
    use(Unmodelled::caches);
  if (role == Role::priority || role == Role::sleep) use(Unmodelled::priority);
  if (info.is_atomic() && op.memory.return_old) use(Unmodelled::order_of_atomics);
  if (is_in(counter_instructions, mnemonic)) use(Unmodelled::counters);
  return parts;
}

} // namespace sluice::emulator
