// ExactSum.
#include <cmath>
#include <utility>

#include "muster/train/metrics.h"

namespace muster::train {
namespace {

struct RoundedSum {
  double sum = 0;
  double error = 0;  // sum + error is a + b, exactly
};

RoundedSum rounded_sum(double a, double b) {
  if (std::fabs(a) < std::fabs(b)) std::swap(a, b);
  const double sum = a + b;
  return {.sum = sum, .error = b - (sum - a)};
}

}  // namespace

// Each part takes the new number up, and leaves what does not fit (Shewchuk, 1997).
void ExactSum::add(double number) {
  std::vector<double> parts;
  for (const double part : parts_) {
    const RoundedSum next = rounded_sum(number, part);
    if (!std::isfinite(next.sum)) {
      number = next.sum;
      break;
    }
    if (next.error != 0) parts.push_back(next.error);
    number = next.sum;
  }
  if (!std::isfinite(number)) {
    not_finite_ += number;
    return;
  }
  if (number != 0) parts.push_back(number);
  parts_ = std::move(parts);
}

std::vector<double> ExactSum::parts() const {
  std::vector<double> all = parts_;
  if (not_finite_ != 0) all.push_back(not_finite_);
  return all;
}

double ExactSum::value() const {
  if (not_finite_ != 0) return not_finite_;
  auto next = parts_.rbegin();
  if (next == parts_.rend()) return 0;
  double sum = *next++;
  double error = 0;
  while (next != parts_.rend() && error == 0) {
    const RoundedSum rounded = rounded_sum(sum, *next++);
    sum = rounded.sum;
    error = rounded.error;
  }
  // Half a unit may have been rounded to the even neighbour: what lies below decides on which side it is.
  if (next == parts_.rend() || (error < 0) != (*next < 0)) return sum;
  const double other = sum + 2 * error;
  return other - sum == 2 * error ? other : sum;
}

}  // namespace muster::train
