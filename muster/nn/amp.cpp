#include "muster/nn/amp.h"

#include <fmt/format.h>

#include <utility>

#include "muster/nn/normalization.h"
#include "muster/nn/process.h"

namespace muster::nn {
namespace {

using Rule = graph::Precision::Rule;

void note_missing_products() {
  if (!bfloat16_instructions(this_processor()).empty() || process().told_of_bfloat16.exchange(true)) return;
  log::warning(
      "mixed precision: this processor has no instructions for bfloat16 (AVX512_BF16), so products are "
      "computed in float32 and rounded: images take half the memory, but amp_level='O0' takes less time");
}

Result<> check_low(DType dtype) {
  if (dtype != DType::bfloat16)
    return fail(Code::invalid_argument,
                fmt::format("mixed precision computes in bfloat16, not in {}", muster::to_string(dtype)));
  note_missing_products();
  return {};
}

// The cells below that `chosen` names, but not those inside of one of them.
void for_chosen(Cell& cell, const std::function<bool(const Cell&)>& chosen,
                const std::function<void(Cell&)>& use) {
  for (const auto& [name, child] : cell.children()) {
    if (chosen(*child))
      use(*child);
    else
      for_chosen(*child, chosen, use);
  }
}

void set_all(Cell& network, const std::optional<CellPrecision>& precision) {
  network.set_precision(precision);
  for (const auto& [path, cell] : network.descendants()) cell->set_precision(precision);
}

// What a cell computes in, and its inputs are cast to.
CellPrecision computing_in(DType dtype) {
  CellPrecision made{.ops = {}, .inputs = dtype};
  if (dtype != DType::float32) made.ops = {.rule = Rule::low, .low = dtype};
  return made;
}

// The same for `cell` and all below, by a level of mixed precision; what `cell` gives is cast to `outputs`.
void compute_in(Cell& cell, DType dtype, DType outputs) {
  CellPrecision precision = computing_in(dtype);
  precision.automatic = true;
  set_all(cell, precision);
  precision.outputs = outputs;
  cell.set_precision(precision);
}

// Whatever comes in: casts around it would change nothing.
bool computes_in_float32(const Cell& cell) {
  return dynamic_cast<const BatchNorm*>(&cell) != nullptr || dynamic_cast<const LayerNorm*>(&cell) != nullptr;
}

// What an earlier level has set.
void forget(Cell& network) {
  const auto forget_one = [](Cell& cell) {
    if (cell.precision() && cell.precision()->automatic) cell.set_precision({});
  };
  forget_one(network);
  for (const auto& [path, cell] : network.descendants()) forget_one(*cell);
}

}  // namespace

Result<> Cell::to_float(DType dtype) {
  if (dtype != DType::float32) MUSTER_TRY_VOID(check_low(dtype));
  set_all(*this, computing_in(dtype));
  return {};
}

void Cell::set_precision(std::optional<CellPrecision> precision) {
  precision_ = std::move(precision);
  touch("its precision was set");
}

Result<> check_amp_level(const AmpOptions& options) {
  if (options.level == "O0") return {};
  for (const char* known : {"O1", "O2", "O3", "auto"})
    if (options.level == known) return check_low(options.dtype);
  return fail(Code::invalid_argument,
              fmt::format("amp_level is 'O0', 'O1', 'O2', 'O3' or 'auto', not '{}'", options.level));
}

Result<> auto_mixed_precision(Cell& network, const AmpOptions& options) {
  MUSTER_TRY_VOID(check_amp_level(options));
  if (options.level == "O0") return {};
  forget(network);
  if (options.level == "O2" || options.level == "O3") {
    compute_in(network, options.dtype, DType::float32);
    return {};
  }
  const Rule rule = options.level == "O1" ? Rule::listed : Rule::automatic;
  network.set_precision(CellPrecision{.ops = {.rule = rule, .low = options.dtype}, .automatic = true});
  return {};
}

Result<> custom_mixed_precision(Cell& network, const CustomAmpOptions& options) {
  if ((options.white == nullptr) == (options.black == nullptr))
    return fail(Code::invalid_argument,
                "custom_mixed_precision takes a white_list or a black_list, one of both");
  MUSTER_TRY_VOID(check_low(options.dtype));
  forget(network);
  if (options.white == nullptr) {
    compute_in(network, options.dtype, DType::float32);
    for_chosen(network, options.black, [&](Cell& cell) {
      if (!computes_in_float32(cell)) compute_in(cell, DType::float32, options.dtype);
    });
    return {};
  }
  const auto lower = [&](Cell& cell) { compute_in(cell, options.dtype, DType::float32); };
  if (options.white(network))
    lower(network);
  else
    for_chosen(network, options.white, lower);
  return {};
}

}  // namespace muster::nn
