// Random numbers: of the job's seed, the step and `stream`, on whichever thread.
#include <cmath>

#include "muster/graph/ops/array.h"
#include "muster/tensor/parallel.h"
#include "muster/tensor/tensor.h"

namespace muster::graph {
namespace {
namespace random_rows {

constexpr std::int64_t grain = 4096;

// Of the call with this `stream` in this step. `seed` is the script's own, 0 without one.
std::uint64_t stream_number(const KernelCall& call, std::uint64_t seed, std::uint64_t stream) {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: bits far apart
  return ((seed * spread + call.context->step) * spread + stream + 1) * spread;
}

struct Settings {
  DType dtype = DType::float32;
  std::int64_t count = 0;
  std::uint64_t stream = 0;
  std::uint64_t seed = 0;
};

Settings settings_for(const Attributes& attributes, const TensorType& made) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint64_t>(attributes.get(name, std::int64_t{0}));
  };
  return {made.dtype, made.shape.elements(), number("stream"), number("seed")};
}

// Fills the output with draw(random, element, draws): the draws of an element are its own.
template <class T, class Draw>
void fill_as(const KernelCall& call, const Settings& settings, const Draw& draw) {
  const RandomStream random(call.context->seed, stream_number(call, settings.seed, settings.stream));
  T* y = call.output<T>();
  parallel_for(settings.count, grain, call.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(draw(random, i));
  });
}

template <class Draw>
void fill(const KernelCall& call, const Settings& settings, const Draw& draw) {
  if (settings.dtype == DType::float32) return fill_as<float>(call, settings, draw);
  if (settings.dtype == DType::float64) return fill_as<double>(call, settings, draw);
  fill_as<std::int64_t>(call, settings, draw);
}

// ---- Without inputs --------------------------------------------------------------------------------------

Types infer(const Signature& signature) {
  const DType dtype = signature.attributes.get("dtype", DType::float32);
  const Shape shape(sizes_of(signature.attributes, "shape"));
  if (dtype != DType::float32 && dtype != DType::float64)
    return bad("random: float32 or float64 is needed, not {}: cast the result", muster::to_string(dtype));
  for (const std::int64_t size : shape)
    if (size < 0) return bad("random: {} has a negative size", muster::to_string(shape));
  return std::vector<TensorType>{{dtype, shape}};
}

Prepared prepare(const Signature& signature) {
  return prepared(settings_for(signature.attributes, signature.outputs[0]));
}

void run_uniform(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  // float32 keeps 24 bits: more would round up to 1, which does not belong to [0, 1).
  const double steps = settings.dtype == DType::float32 ? 0x1.0p24 : 0x1.0p53;
  fill(call, settings, [steps](const RandomStream& random, std::int64_t i) {
    return std::floor(random.uniform(static_cast<std::uint64_t>(i)) * steps) / steps;
  });
}

void run_normal(const KernelCall& call) {
  fill(call, call.setting<Settings>(), [](const RandomStream& random, std::int64_t i) {
    return random.normal(static_cast<std::uint64_t>(i));
  });
}

// ---- Of a parameter for each element ---------------------------------------------------------------------

Types infer_of_parameter(const Signature& signature) {
  MUSTER_TRY_VOID(require_floating("random", signature.inputs[0]));
  return same_as_first(signature);
}

// The draws of one element: a stream of its own.
class Draws {
 public:
  Draws(const RandomStream& random, std::int64_t element)
      : random_(random.bits(2 * static_cast<std::uint64_t>(element)),
                random.bits(2 * static_cast<std::uint64_t>(element) + 1)) {}
  // Each takes a pair of its own: a normal number is made of both.
  double uniform() { return random_.uniform(2 * next_++); }
  double normal() { return random_.normal(2 * next_++); }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

// Marsaglia and Tsang, A simple method for generating gamma variables, ACM TOMS 26, 2000.
double gamma_draw(Draws& draws, double shape) {
  if (!(shape > 0)) return std::nan("");
  if (shape < 1) {
    const double power = std::pow(1 - draws.uniform(), 1 / shape);
    return gamma_draw(draws, shape + 1) * power;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draws.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - draws.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Products of uniform numbers for small rates; above, Ahrens and Dieter's step down by a gamma number.
double poisson_draw(Draws& draws, double rate) {
  if (!(rate >= 0)) return std::nan("");
  double count = 0;
  while (rate > 30) {
    const double jump = std::floor(rate * 7 / 8);
    const double time = gamma_draw(draws, jump);
    if (time > rate) {
      // Of jump - 1 events before `time` each falls before `rate` with this chance.
      for (double k = 1; k < jump; ++k) count += draws.uniform() * time < rate ? 1 : 0;
      return count;
    }
    count += jump;
    rate -= time;
  }
  const double end = std::exp(-rate);
  for (double product = 1 - draws.uniform(); product > end; product *= 1 - draws.uniform()) ++count;
  return count;
}

Prepared prepare_of_parameter(const Signature& signature) {
  return prepared(settings_for(signature.attributes, signature.inputs[0]));
}

template <double (*draw)(Draws&, double)>
void run_of_parameter(const KernelCall& call) {
  const auto& settings = call.setting<Settings>();
  fill(call, settings, [&](const RandomStream& random, std::int64_t i) {
    Draws draws(random, i);
    const bool is_float = settings.dtype == DType::float32;
    return draw(draws, is_float ? static_cast<double>(call.input<float>(0)[i]) : call.input<double>(0)[i]);
  });
}

Op row(std::string_view name, std::string_view documentation, void (*run)(const KernelCall&)) {
  return {.name = name,
          .documentation = documentation,
          .inputs_min = 0,
          .inputs_max = 0,
          .infer = infer,
          .kernels = {{"reference", any_signature, prepare, run}}};
}

Op row_of_parameter(std::string_view name, std::string_view documentation, void (*run)(const KernelCall&)) {
  return {.name = name,
          .documentation = documentation,
          .infer = infer_of_parameter,
          .kernels = {{"reference", any_signature, prepare_of_parameter, run}}};
}

std::vector<Op> rows() {
  return {
      row("random_uniform",
          "Random numbers of `shape` and `dtype` (float32, float64), equally likely in [0, 1). They are a "
          "function of the job's seed, the script's `seed`, the step and `stream`.",
          run_uniform),
      row("random_normal", "The same, normally distributed with mean 0 and deviation 1.", run_normal),
      row_of_parameter("random_gamma",
                       "For each x > 0 a random number of the gamma distribution of that shape and of "
                       "scale 1; streams as for random_uniform.",
                       run_of_parameter<gamma_draw>),
      row_of_parameter("random_poisson", "For each rate x >= 0 a random number of the Poisson distribution.",
                       run_of_parameter<poisson_draw>)};
}

}  // namespace random_rows
}  // namespace

std::vector<const Op*> rows_of_random() {
  using namespace random_rows;
  static const std::vector<Op> family = rows();
  return addresses(family);
}

}  // namespace muster::graph
