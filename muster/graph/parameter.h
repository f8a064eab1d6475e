// A named tensor that outlives the calls: weights, and the state of optimizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/graph/layout.h"
#include "muster/graph/value.h"

namespace muster::graph {

struct RunContext;

// Another order of elements in which a plan keeps a parameter between its runs
// (execution/parameter_formats.h).
struct ParameterFormat;
using ParameterFormatPtr = std::shared_ptr<const ParameterFormat>;

// Fills a new tensor; `stream` belongs to this parameter alone (seed of the job, hash of the name).
using Initializer = std::function<void(const Tensor& out, const RandomStream& stream)>;

// Its identity is the object's. Storage is made on first use; setting copies into it, optimizers update it in
// place. A plan that updates it may keep it in the order that its kernels want: then it is brought back to
// row-major order when it is read, so only plans see another order, and a tensor that was read before
// keeps what it held. Threads: one at a time, for reading too.
class Parameter : public std::enable_shared_from_this<Parameter> {
 public:
  enum class Origin { initialised, set_by_user };

  Parameter(std::string name, TensorType type, Initializer initializer, bool requires_grad = true);
  // A parameter with values from the start.
  Parameter(std::string name, const Tensor& values, bool requires_grad = true);

  const std::string& name() const { return name_; }
  // The name decides the random numbers, so it is final once the storage is made; cells name their parameters
  // by path ("fc.weight") when they are inserted.
  void rename(std::string name);
  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }

  bool requires_grad() const { return requires_grad_; }
  void set_requires_grad(bool requires_grad);
  // Of each worker alone, which data-parallel training refuses (train/agreement.h).
  bool is_layerwise() const { return is_layerwise_; }
  void set_layerwise(bool is_layerwise) { is_layerwise_ = is_layerwise; }
  // Grows whenever something changed that a trace may depend on (never by new values).
  std::uint64_t version() const { return version_; }

  Origin origin() const { return origin_; }
  // How it begins; null where it was made with values.
  const Initializer& initializer() const { return initializer_; }
  // Decides its random numbers: its name, and its number among namesakes.
  std::string stream_name() const;
  bool materialized() const { return plain_.defined() || formatted_ != nullptr; }
  // Makes the storage from (seed, name) if there is none yet. To be read. Not of what is absent.
  const Tensor& materialize(std::uint64_t seed);
  // The same, to be written.
  const Tensor& writable(std::uint64_t seed);
  // The storage; it must have been made. To be read.
  const Tensor& storage() const;
  // Copies the elements out in row-major order, without keeping that order: cheaper than materialize() where
  // the next step changes them again. Not of what is absent.
  void copy_to(std::byte* to, std::uint64_t seed, int threads);
  // Copies `values` in; an error when dtype or shape differ. What another worker has is left to that one. Of
  // what is divided, values of the whole, of which this process takes its piece, or of the piece.
  Result<> set(const Tensor& values);

  // Once a network was divided over several workers: the one that has this parameter, and whether that is
  // this process. What another worker has is never made here, and may not be read.
  struct Home {
    std::uint32_t rank = 0;
    bool is_here = true;
    std::string reason = {};  // for people who read it elsewhere
  };
  const std::optional<Home>& home() const { return home_; }
  // Elsewhere, what was made here is dropped.
  void set_home(Home home);
  // Why it cannot be read here, and who has it; null when it can.
  const std::string* absence() const { return home_ && !home_->is_here ? &home_->reason : nullptr; }

  // Of a parameter that is divided over ranks: how, and which of them this process is.
  struct Share {
    TensorLayout layout;
    std::uint32_t rank = 0;
    bool scatters_gradients = false;  // its gradients are reduced to pieces, too, where only its update asks
  };
  const std::optional<Share>& share() const { return share_; }
  // From now on this process holds its piece only; what is here of the whole goes. Nothing: whole again, with
  // initial values until it is set. type() stays that of the whole.
  void divide(std::optional<Share> share);
  // Where the piece here was read from; nothing once it was set to other values.
  struct PieceSource {
    std::string save;  // equal for pieces that fit each other; empty: not known
    std::string file;
  };
  const std::optional<PieceSource>& piece_source() const { return piece_source_; }
  void set_piece_source(std::optional<PieceSource> source) { piece_source_ = std::move(source); }
  // What counts its updates, of the optimizer that makes them; null: none does.
  const std::shared_ptr<Parameter>& update_counter() const { return update_counter_; }
  void set_update_counter(std::shared_ptr<Parameter> counter) { update_counter_ = std::move(counter); }
  // What is here: the type of the piece, or the whole.
  TensorType held_type() const;
  // Why it cannot be read here as a whole; empty when it can, or is absent().
  std::string division_text() const;

  // Whether the forward pass writes it (moving statistics): then it depends on the samples that this process
  // has seen, and workers that train together have different ones.
  bool is_statistic() const { return is_statistic_; }
  void mark_statistic() { is_statistic_ = true; }

  // An embedding, of which single rows are read: (rows, width).
  bool is_table() const { return is_table_; }
  void mark_table() { is_table_ = true; }
  // What a worker knows of a table on parameter servers: `values` are what it begins with where no formula
  // says that, else undefined. Of one that takes any number, `ids` says whose they are: int64, ascending.
  struct ServedRows {
    Shape shape;  // rows 0: any 64-bit ids
    Tensor values;
    Tensor ids = {};
    // Instead of both: where a checkpoint has them, which the servers read themselves.
    std::string saved = {};
    bool takes_any_id() const { return shape[0] == 0; }
  };
  const std::optional<ServedRows>& served_rows() const { return served_rows_; }
  // Of a table: from here on it is one row of zeros, which stands for the rows that are on servers, and set()
  // takes all of them.
  void leave_to_servers();
  // Of the state that an optimizer keeps for such a table: its rows are on servers, too.
  void leave_to_servers_beside(const Parameter& table);
  // Rows with which a table on servers begins that takes any number: ids int64 (n,), values (n, width).
  // Errors name what is wrong with them.
  Result<> set_rows(const Tensor& ids, const Tensor& values);
  // Rows, of whichever table on servers, that those read where this says.
  void set_saved_rows(std::string where);

  // For plans: the elements in another order, or (null) row-major, made like the storage, to be read or also
  // written. The address holds until the parameter is asked for another order or is set. A plan says when it
  // begins to write.
  std::byte* in_format(const ParameterFormatPtr& format, std::uint64_t seed, bool to_write);
  void note_write();

 private:
  void require_to_write() const;

  std::string name_;
  std::uint32_t namesake_ = 0;  // how many others were given this name before it
  TensorType type_;
  Initializer initializer_;
  bool requires_grad_;
  bool is_layerwise_ = false;
  bool is_statistic_ = false;
  bool is_table_ = false;
  std::optional<ServedRows> served_rows_;
  std::uint64_t version_;
  Origin origin_ = Origin::initialised;
  // Of these two at least one is there once materialized; both when equal.
  mutable Tensor plain_;
  std::shared_ptr<Buffer> formatted_;
  ParameterFormatPtr format_;  // of formatted_
  std::optional<Home> home_;
  std::optional<Share> share_;
  std::optional<PieceSource> piece_source_;
  std::shared_ptr<Parameter> update_counter_;
};

// Of a divided parameter the whole: a collective call of all ranks that hold a piece. An error where
// `context` does not have these ranks.
Result<Tensor> gathered(Parameter& parameter, const RunContext& context);

// Whether parameters of one name begin differently: the first as always, a second one with random numbers of
// its own, and so on. Equal on all workers that run one script. Off by default. Any thread.
void tell_namesakes_apart(bool apart);
// Names count from the first again: after set_seed.
void forget_namesakes();

// How often any parameter of this process was written or set, but for statistics, which say themselves that
// they are each worker's own. Any thread.
std::uint64_t parameter_writes();

// Called with each parameter that is written or set, on the thread that does it; null, the default: none.
using WriteObserver = void (*)(Parameter& written);
void set_write_observer(WriteObserver observer);

// Process-wide stamps for versions: each is greater than all before. Any thread.
std::uint64_t next_version();

}  // namespace muster::graph
