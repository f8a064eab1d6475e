// Table spec: what a table on parameter servers is, said alike by every worker and server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/base/base.h"

namespace muster::server {

// Values of a row before its first update: a pure function of the job's seed, the table's name and the row,
// so that a row without an update need not be kept. With a vocabulary they are those of a dense
// parameter of this name: constant is `mean`; normal is mean + scale * N(0, 1); uniform is in [-scale,
// scale).
struct FirstValue {
  enum class Kind : std::uint8_t { constant, normal, uniform };
  Kind kind = Kind::normal;
  double scale = 0.01;
  double mean = 0.0;
  friend bool operator==(const FirstValue&, const FirstValue&) = default;
};
inline constexpr FirstValue::Kind last_first_value = FirstValue::Kind::uniform;

// Optimizers that can update single rows. Adam is LazyAdam's, too: see RowRule.
enum class RuleKind : std::uint8_t { sgd, momentum, adagrad, adam, ftrl };
inline constexpr RuleKind last_rule_kind = RuleKind::ftrl;

// How rows are updated; each kind reads what its optimizer has. Learning rates come with each push.
struct RuleSettings {
  RuleKind kind = RuleKind::sgd;
  double weight_decay = 0.0;
  double loss_scale = 1.0;
  double momentum = 0.0;   // sgd, momentum
  double dampening = 0.0;  // sgd
  bool nesterov = false;   // sgd, momentum, adam
  double beta1 = 0.9;      // adam
  double beta2 = 0.999;    // adam
  double eps = 1e-8;       // adam; adagrad
  bool amsgrad = false;    // adam
  double initial = 0.1;    // adagrad, ftrl: the accumulator's first value
  bool accumulate = true;  // adagrad
  double power = -0.5;     // ftrl
  double l1 = 0.0;         // ftrl
  double l2 = 0.0;         // ftrl
  friend bool operator==(const RuleSettings&, const RuleSettings&) = default;
};

// The rule of an optimizer, by its class: "SGD", "Momentum", "Adagrad", "Adam", "LazyAdam", "FTRL". Others
// cannot update single rows: an error that lists these.
Result<RuleKind> rule_of_optimizer(std::string_view class_name);

// Which rows leave a table without vocabulary; 0 is never. A row that has left begins anew.
struct Eviction {
  std::uint64_t age_max = 0;   // steps since its last update
  std::uint64_t rows_max = 0;  // of the table on each server: those that were updated longest ago leave
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

// A checkpoint with whose rows a table begins: those that are not in it begin as ever.
struct SavedSource {
  std::string place = {};   // as RowFiles::read understands it; empty: none
  bool has_states = false;  // what the optimizer keeps is taken as well
  std::uint64_t steps = 0;  // of the job, behind it
  friend bool operator==(const SavedSource&, const SavedSource&) = default;
};

// Where the rows of a table are.
enum class Sharding : std::uint8_t {
  ranges,  // each server has a range: rows // servers, and one more on the first ones
  hash,    // without vocabulary: any 64-bit id, on the server that its hash says
  whole,   // all on one server: small parameters
};
inline constexpr Sharding last_sharding = Sharding::whole;

struct TableSpec {
  std::string name = {};
  Sharding sharding = Sharding::ranges;
  std::uint32_t home = 0;  // of `whole`: the parameter's number; it lives on server home mod servers
  std::uint64_t rows = 0;  // ids are in [0, rows); 0 for hash
  std::uint32_t width = 1;
  std::uint64_t seed = 0;
  DType dtype = DType::float32;  // of rows at rest: float32 or bfloat16; state is float32
  FirstValue first_value = {};
  RuleSettings rule = {};
  Eviction eviction = {};
  SavedSource saved = {};
  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

inline constexpr std::uint32_t width_max = 1 << 20;
inline constexpr std::size_t table_name_max = 256;
inline constexpr std::size_t place_name_max = 8192;
inline constexpr std::uint64_t rows_per_server_max = 0xFFFFFFFE;  // they are numbered by 32 bits

// An error that names the table and what is wrong with it.
Result<> check(const TableSpec& spec, std::uint32_t servers);

// Numbers of one row at rest: `width` values, and as many for each state of its optimizer.
std::size_t whole_width(const TableSpec& spec);
// Bytes of one row at rest, its optimizer's state included.
std::uint64_t row_size_bytes(const TableSpec& spec);
// Bytes of the largest share of a server, when every row was updated; of a table without vocabulary, for
// `rows_max` rows. 0: no bound is known.
std::uint64_t share_size_bytes(const TableSpec& spec, std::uint32_t servers);

}  // namespace muster::server
