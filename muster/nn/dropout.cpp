#include "muster/nn/dropout.h"

#include "muster/nn/arguments.h"
#include "muster/nn/cell_text.h"
#include "muster/nn/ops.h"
#include "muster/nn/values.h"

namespace muster::nn {

Dropout::Dropout(double p) : Cell("Dropout"), p_(p) {
  if (!(p >= 0 && p < 1)) refuse_argument("Dropout", "p", "in [0, 1)", p).value();
}

Values Dropout::construct(std::span<const Value> inputs) {
  const Value x = only_input(*this, inputs);
  if (!training() || p_ == 0) return x;
  return ops::dropout(x, 1 - p_, graph::default_context());
}

std::string Dropout::settings() const { return CellText().add("p", p_).take(); }

}  // namespace muster::nn
