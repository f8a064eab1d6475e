#include "muster/graph/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "muster/graph/thread_state.h"

namespace muster::graph {
namespace {

// look(element) for each, as a double, with its index.
template <class Look>
void for_each_number(const std::byte* elements, DType dtype, std::int64_t count, const Look& look) {
  const auto all = [&]<class T>(const T* typed) {
    for (std::int64_t i = 0; i < count; ++i) look(static_cast<double>(static_cast<T>(typed[i])), i);
  };
  if (dtype == DType::float32) return all(reinterpret_cast<const float*>(elements));
  if (dtype == DType::float64) return all(reinterpret_cast<const double*>(elements));
  const auto low = [&]<class T>(const T* typed) {
    for (std::int64_t i = 0; i < count; ++i) look(static_cast<double>(static_cast<float>(typed[i])), i);
  };
  if (dtype == DType::bfloat16) return low(reinterpret_cast<const bfloat16*>(elements));
  if (dtype == DType::float16) return low(reinterpret_cast<const float16*>(elements));
}

// "(2, 7)"
std::string place_in(const Shape& shape, std::int64_t index) {
  std::vector<std::int64_t> places(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0; index /= shape[axis]) places[axis] = index % shape[axis];
  return muster::to_string(Shape(places));
}

// "3 NaN and 1 infinite of 12 elements, the first at (0, 2)"
std::string counts(const LookedAt& looked, const std::byte* elements) {
  const auto& [nans, infinities, least, greatest] = looked.numbers;
  std::string text;
  if (nans > 0) text += fmt::format("{} NaN", nans);
  if (infinities > 0) text += fmt::format("{}{} infinite", nans > 0 ? " and " : "", infinities);
  text += fmt::format(" of {} elements", looked.type.shape.elements());
  if (elements == nullptr) return text;
  std::int64_t first = -1;
  for_each_number(elements, looked.type.dtype, looked.type.shape.elements(), [&](double number, auto index) {
    if (first < 0 && !std::isfinite(number)) first = index;
  });
  return text + fmt::format(", the first at {}", place_in(looked.type.shape, first));
}

// "float32 (4, 3) from -1 to 2"
std::string describe(const LookedAt& looked) {
  std::string text = to_string(looked.type);
  const Numbers& numbers = looked.numbers;
  if (numbers.least <= numbers.greatest)
    text += fmt::format(" from {:.6g} to {:.6g}", numbers.least, numbers.greatest);
  if (numbers.nans > 0 || numbers.infinities > 0)
    text += " with" + fmt::format(" {}", counts(looked, nullptr));
  if (!looked.source.empty()) text += fmt::format(" ({})", looked.source);
  return text;
}

// "log, forward, of Network 'head', net.py:31"
std::string where(const Op& op, const OriginPtr& origin) {
  if (origin == nullptr) return std::string(op.name);
  std::string text(op.name);
  if (!origin->is_backward)
    text += ", forward";
  else if (origin->passed.empty() || origin->passed == op.name)
    text += ", backward";
  else
    text += fmt::format(", backward of {}", origin->passed);
  if (!origin->cell.empty()) text += fmt::format(", of {}", origin->cell);
  if (!origin->line.empty()) text += fmt::format(", {}", origin->line);
  return text;
}

// The first of them that came with NaN, which no op has made.
const LookedAt* culprit_of(std::span<const LookedAt> given) {
  const auto found = std::ranges::find_if(given, [](const LookedAt& each) { return each.numbers.nans > 0; });
  return found == given.end() ? nullptr : &*found;
}

}  // namespace

void look_at_loss(const Tensor& loss, bool is_done) {
  const auto tell = process_state().anomaly_hooks.loss;
  if (tell == nullptr || loss.absence() != nullptr || loss.elements() != 1) return;
  if (loss.dtype() == DType::float32) return tell(loss.item<float>(), is_done);
  for_each_number(loss.bytes(), loss.dtype(), 1, [&](double value, auto) { tell(value, is_done); });
}

Numbers numbers_of(const std::byte* elements, DType dtype, std::int64_t count) {
  Numbers made;
  for_each_number(elements, dtype, count, [&](double number, auto) {
    if (std::isnan(number)) {
      ++made.nans;
    } else if (std::isinf(number)) {
      ++made.infinities;
    } else {
      made.least = std::min(made.least, number);
      made.greatest = std::max(made.greatest, number);
    }
  });
  return made;
}

bool is_anomaly(const Numbers& made, std::span<const LookedAt> given) {
  if (made.nans > 0) return true;
  const auto is_infinite = [](const LookedAt& each) { return each.numbers.infinities > 0; };
  return made.infinities > 0 && !given.empty() && std::ranges::none_of(given, is_infinite);
}

Error anomaly_of(const Op& op, const OriginPtr& origin, const LookedAt& made, const std::byte* elements,
                 std::span<const LookedAt> given) {
  const auto step = process_state().anomaly_hooks.step;
  std::string text = step == nullptr ? std::string("a number that is none") : step();
  text += fmt::format(": {} gave {}: {}", where(op, origin), to_string(made.type), counts(made, elements));
  if (const LookedAt* const culprit = culprit_of(given))
    text += fmt::format(". It came with {}", culprit->source.empty() ? "what it was given" : culprit->source);
  else if (op.collective)
    text += ". What this worker gave is finite: it came from another worker";
  for (std::size_t i = 0; i < given.size() && i < 4; ++i)
    text += fmt::format("{}{}", i == 0 ? "; it was given " : ", ", describe(given[i]));
  return Error{Code::invalid_argument, text};
}

}  // namespace muster::graph
