// Private to train: this worker's part in the steps of parameters that live on parameter servers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/cluster/cluster.h"
#include "muster/graph/served.h"
#include "muster/server/server.h"
#include "muster/train/lookups_ahead.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/row_files.h"

namespace muster::train {

class Session;

// One for a session. Its steps are those of the optimizers: who goes back to a step goes back on the servers,
// too, when it makes that step in the next epoch of the cluster.
class ServedParameters {
 public:
  struct Options {
    Duration call_timeout{};
    std::uint32_t copies = 1;           // of each row
    std::size_t shared_from_bytes = 0;  // of a batch that lies in memory shared with servers of this host
    const Clock& clock = real_clock();
    std::shared_ptr<const net::Security> security = {};  // null: plain
  };
  enum class Listed { values, with_states };
  // The session is borrowed.
  ServedParameters(Session& session, Options options);

  Result<> update(const graph::ServedSteps& steps, std::span<const graph::ServedUpdate> updates);
  Result<> look_up(std::int64_t steps, const graph::ServedLookup& lookup);
  // Before the table's first lookup.
  void set_options(std::int64_t number, const TableOptions& options) { options_of_tables_[number] = options; }
  // What workers have made before this step is applied, also where the staleness lets their steps see less;
  // not where it has no bound.
  Result<> finish_steps();
  // All rows that are kept, with what the optimizer keeps for them or without; none before the first step
  // where a formula begins them. All steps before are done.
  Result<server::ParameterClient::ListedRows> list_rows(std::int64_t number, Listed listed = Listed::values);
  // The rows of these tables, with what their optimizers keep for them, into files below a folder: each
  // server writes its own. All workers make the call; the folder is that which worker 0 says.
  struct SavedTables {
    std::vector<SavedTable> tables = {};
    std::optional<Error> trouble = {};  // of a server's disk, the same on all workers: then there are none
  };
  Result<SavedTables> save_rows(std::span<const std::int64_t> numbers, const std::string& folder);
  // Whether no server knows what the rows begin with: workers do until their first push.
  bool is_unknown_to_servers(std::int64_t number) const;
  bool has_table(std::int64_t number) const { return tables_.contains(number); }
  // Hints that change no number: what the next step will look up, and this step's and the next batch of a
  // training.
  Result<> look_up_ahead(std::int64_t number, const Tensor& ids);
  void begin_step(std::span<const Tensor> batch, const data::Item* next) {
    ahead_.begin_step(batch, next, next_);
  }
  bool wants_next_batch() const { return ahead_.wants_next(); }
  // The process ends next: says in the log how many rows were looked up, and ends the thread behind it. The
  // servers hear of an end for good: this worker's gradients are not waited for any more.
  void leave(bool is_for_good);
  // From any thread.
  void note(graph::ServedGradient gradient);

  // A recovery point of this moment is being saved: who goes back to it makes the same steps again.
  void note_point(const checkpoint::PointId& point);
  // All workers have that point or a later one of the call: servers need not go back behind its steps.
  void note_common_point(const checkpoint::PointId& point);

 private:
  // Gradients of a table's rows that were noted since its last update.
  struct Notes {
    std::size_t count = 0;
    std::vector<std::uint64_t> ids = {};
    std::vector<float> rows = {};
  };
  using NotesByNumber = std::map<std::int64_t, Notes>;

  Result<> update_now(const graph::ServedSteps& steps, std::span<const graph::ServedUpdate> updates,
                      const NotesByNumber& notes);
  Result<> look_up_now(std::uint64_t step, const graph::ServedLookup& lookup);
  Result<> list_rows_now(std::int64_t number, Listed what, server::ParameterClient::ListedRows& listed);
  // What the rows of all_ids begin with, and the optimizer's states of them.
  std::vector<float> whole_rows(std::int64_t number, std::span<const float> values) const;
  Result<> begin_with_saved(std::int64_t number, server::TableSpec& spec) const;
  SavedTable saved_table(std::int64_t number) const;
  Result<SavedTables> save_rows_now(std::span<const std::int64_t> numbers, const std::string& folder,
                                    Communicator& all);
  Result<> follow_epoch(std::uint64_t step);
  Result<> add_table(std::int64_t number);
  Result<> push(std::uint64_t own_steps, std::span<const graph::ServedUpdate> updates,
                const NotesByNumber& notes);
  Result<> pull(std::uint64_t step, std::span<const graph::ServedUpdate> updates);
  Result<> check_step(std::uint64_t step) const;
  Result<> check_unwritten(const graph::ServedUpdate& update) const;
  void note_made(std::span<const graph::ServedUpdate> updates);
  Result<> call_together(std::string_view what, const std::function<Result<>()>& make);
  bool servers_may_not_have_begun() const;

  NotesByNumber take_notes(std::span<const graph::ServedUpdate> updates);
  Result<> check_notes(const graph::ServedUpdate& update, const Notes& notes) const;

  struct Table {
    std::uint32_t number = 0;  // on the servers
    server::TableSpec spec = {};
    std::vector<std::uint64_t> all_ids = {};   // where the workers say what rows begin with; ascending
    std::span<const float> first_values = {};  // of a table of embeddings that a formula does not begin
    Tensor made_values = {};                   // whose elements they are
    bool has_rule = false;                     // of an optimizer
    std::optional<std::uint64_t> made =
        {};  // of a dense one, in this epoch: a hash of what servers made last
  };

  Session& session_;
  Options options_;
  std::vector<cluster::Member> servers_;  // of the epoch
  std::unique_ptr<server::ParameterClient> client_;
  std::map<std::int64_t, Table> tables_;  // by number of the parameter
  std::optional<std::uint64_t> epoch_;
  const std::uint64_t joined_in_;                           // epoch
  std::optional<std::uint64_t> origin_;                     // the step at which the job began
  std::set<std::int64_t> begun_;                            // parameters whose values were said in this epoch
  std::uint64_t next_ = 0;                                  // step
  std::map<std::int64_t, TableOptions> options_of_tables_;  // by number of the parameter
  LookupsAhead ahead_;
  std::map<checkpoint::PointId, std::uint64_t> points_;  // the next step of each that is not common yet
  std::optional<Error> failure_;                         // of this epoch
  std::mutex notes_mutex_;
  NotesByNumber notes_;
};

// Sets up what the ops of served parameters call.
void watch_served_parameters();

}  // namespace muster::train
