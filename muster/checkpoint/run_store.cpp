#include "muster/checkpoint/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <utility>

#include "muster/checkpoint/journal.h"
#include "muster/checkpoint/ledger.h"
#include "muster/checkpoint/point_files.h"
#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

constexpr std::size_t keep_steps_min = 3;

Result<> check(const RunOptions& options) {
  if (options.folder.empty())
    return fail(Code::invalid_argument, "recovery points need a folder: MS_RECOVERY_PATH");
  if (!is_job(options.job))
    return fail(Code::invalid_argument,
                fmt::format("job '{}': the id of a job is 16 hexadecimal digits", options.job));
  if (options.rank >= options.world)
    return fail(Code::invalid_argument,
                fmt::format("rank {} is none of {} workers", options.rank, options.world));
  return {};
}

// Whom the folder belongs to stands in the journal. One that cannot be read is put aside: what the calls
// returned is lost then, their end points are not.
Result<Journal> open_journal(const std::string& root, const RunOptions& options, Storage& storage) {
  const RunIdentity identity{.job = options.job, .world = options.world, .rank = options.rank};
  const std::string path = fmt::format("{}/{}", root, journal_file);
  auto journal = Journal::open(path, identity, storage);
  if (!journal && journal.error().code == Code::corrupt) {
    log::warning(fmt::format("{}; it is put aside as {}{}", journal.error().message, path, damaged_suffix));
    MUSTER_TRY_VOID(storage.rename(path, path + std::string(damaged_suffix)));
    journal = Journal::open(path, identity, storage);
  }
  if (!journal) return journal;
  const RunIdentity& found = journal->content().identity;
  if (found.world != options.world)
    return fail(Code::refused,
                fmt::format("the recovery points in '{}' are those of a job of {} workers, and this one "
                            "has {}: start {} workers, or delete '{}' to start fresh",
                            root, found.world, options.world, found.world, options.folder));
  if (found != identity)
    return fail(Code::refused,
                fmt::format("the recovery points in '{}' are those of worker {} of job {}, not of "
                            "worker {} of job {}: delete '{}' to start fresh",
                            root, found.rank, found.job, options.rank, options.job, root));
  return journal;
}

}  // namespace

class RunStore::Implementation {
 public:
  Implementation(RunOptions options, std::string root, Storage& storage, Journal journal)
      : options_(std::move(options)),
        root_(std::move(root)),
        storage_(storage),
        journal_(std::move(journal)),
        ledger_(fmt::format("{}/{}", root_, ledger_file), storage) {}
  ~Implementation() { flush_ledger(); }

  const std::string& root() const { return root_; }
  Result<> read_points();
  std::vector<PointId> points() const;
  Result<> save(const Point& point);
  Result<Point> load(const PointId& id) const;
  void drop(const PointId& id, std::string_view why);
  Result<> finish_call(CallRecord record);
  std::optional<CallRecord> finished(std::uint64_t call) const;
  Result<> add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash);

 private:
  std::string path_of(const PointId& id) const { return fmt::format("{}/{}", root_, folder_name(id)); }
  Result<Manifest> read_own_manifest(const PointId& id) const;
  tl::unexpected<Error> not_saved(const Point& point, const Error& error) const;
  void put_aside(const PointId& id, std::string_view why);
  std::vector<PointId> needless(const PointId& newest) const;
  void remove_needless(const PointId& newest);
  void flush_ledger();

  const RunOptions options_;
  const std::string root_;
  Storage& storage_;
  std::mutex save_mutex_;  // one save at a time
  mutable std::mutex index_mutex_;
  std::map<PointId, std::uint64_t> points_;  // to the signature of its tensors
  mutable std::mutex journal_mutex_;
  Journal journal_;
  Ledger ledger_;
};

// ---- Opening ----------------------------------------------------------------------------------------------

Result<> RunStore::Implementation::read_points() {
  MUSTER_TRY(const std::vector<std::string> names, storage_.list(root_));
  for (const std::string& name : names) {
    const auto id = point_of_folder(name);
    if (!id) continue;
    if (const auto manifest = read_own_manifest(*id))
      points_.emplace(*id, manifest->signature());
    else
      put_aside(*id, manifest.error().message);
  }
  return {};
}

Result<Manifest> RunStore::Implementation::read_own_manifest(const PointId& id) const {
  MUSTER_TRY(Manifest manifest, read_manifest(path_of(id), storage_));
  if (manifest.id != id || manifest.job != options_.job || manifest.world != options_.world ||
      manifest.rank != options_.rank)
    return fail(Code::corrupt,
                fmt::format("'{}' is {} of worker {} of {} in job {}", path_of(id), to_string(manifest.id),
                            manifest.rank, manifest.world, manifest.job));
  return manifest;
}

// ---- Saving -----------------------------------------------------------------------------------------------

Result<> RunStore::Implementation::save(const Point& point) {
  const std::lock_guard one_at_a_time(save_mutex_);
  flush_ledger();
  const Manifest head{.job = options_.job, .world = options_.world, .rank = options_.rank, .id = point.id};
  auto written = write_point(point, head, root_, storage_);
  if (!written) return not_saved(point, written.error());
  {
    const std::lock_guard lock(index_mutex_);
    points_[point.id] = written->signature();
  }
  remove_needless(point.id);
  return {};
}

tl::unexpected<Error> RunStore::Implementation::not_saved(const Point& point, const Error& error) const {
  const std::vector<PointId> left = points();
  const std::string newest =
      left.empty() ? "there is none yet" : fmt::format("the newest is that of {}", to_string(left.back()));
  return fail(error.code,
              fmt::format("the recovery point of {} ({} bytes) was NOT saved: {}. The points before it "
                          "are untouched, {}. Make room on the disk of '{}', or repair it: until a point "
                          "is saved again, whatever fails costs the steps since then",
                          to_string(point.id), size_bytes(point), error.message, newest, root_));
}

std::vector<PointId> RunStore::Implementation::needless(const PointId& newest) const {
  const std::lock_guard lock(index_mutex_);
  std::vector<PointId> found;
  std::size_t steps = 0;
  bool has_start = false;
  std::vector<std::uint64_t> ended;  // signatures of ends
  for (auto at = points_.rbegin(); at != points_.rend(); ++at) {
    const auto& [id, signature] = *at;
    bool is_needless = id > newest;
    if (!is_needless && id.moment == PointId::Moment::step)
      is_needless = ++steps > std::max(options_.keep_steps, keep_steps_min);
    if (!is_needless && id.moment == PointId::Moment::start) is_needless = std::exchange(has_start, true);
    if (!is_needless && id.moment == PointId::Moment::end) {
      is_needless = std::find(ended.begin(), ended.end(), signature) != ended.end();
      ended.push_back(signature);
    }
    if (is_needless) found.push_back(id);
  }
  return found;
}

// A point that cannot be removed does no harm but to the disk.
void RunStore::Implementation::remove_needless(const PointId& newest) {
  for (const PointId& id : needless(newest)) {
    {
      const std::lock_guard lock(index_mutex_);
      points_.erase(id);
    }
    if (const auto removed = remove_point(path_of(id), root_, storage_); !removed)
      log::warning(fmt::format("a recovery point that is no more needed stays: {}", removed.error().message));
  }
}

// ---- The rest ---------------------------------------------------------------------------------------------

std::vector<PointId> RunStore::Implementation::points() const {
  const std::lock_guard lock(index_mutex_);
  std::vector<PointId> ids;
  for (const auto& [id, signature] : points_) ids.push_back(id);
  return ids;
}

Result<Point> RunStore::Implementation::load(const PointId& id) const {
  MUSTER_TRY(const Manifest manifest, read_own_manifest(id));
  return read_point(path_of(id), manifest, storage_);
}

void RunStore::Implementation::drop(const PointId& id, std::string_view why) {
  {
    const std::lock_guard lock(index_mutex_);
    points_.erase(id);
  }
  put_aside(id, why);
}

// One damaged point is enough to look at; they must not fill the disk.
void RunStore::Implementation::put_aside(const PointId& id, std::string_view why) {
  const std::string path = path_of(id);
  const std::string aside = path + std::string(damaged_suffix);
  log::warning(fmt::format("the recovery point '{}' is damaged and is not used{}{}; it is put aside as {}{}",
                           path, why.empty() ? "" : ": ", why, folder_name(id), damaged_suffix));
  remove_damaged(root_, storage_);
  const auto renamed = storage_.rename(path, aside);
  if (!renamed && renamed.error().code != Code::not_found) log::warning(renamed.error().message);
}

Result<> RunStore::Implementation::finish_call(CallRecord record) {
  const std::lock_guard lock(journal_mutex_);
  return journal_.add(std::move(record));
}

std::optional<CallRecord> RunStore::Implementation::finished(std::uint64_t call) const {
  const std::lock_guard lock(journal_mutex_);
  const auto found = journal_.content().records.find(call);
  if (found == journal_.content().records.end()) return std::nullopt;
  return found->second;
}

Result<> RunStore::Implementation::add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash) {
  return ledger_.add(call, step, hash);
}

void RunStore::Implementation::flush_ledger() {
  if (const auto flushed = ledger_.flush(); !flushed)
    log::warning(
        fmt::format("the hashes of some steps are lost for `muster verify`: {}", flushed.error().message));
}

// ---- The door ---------------------------------------------------------------------------------------------

RunStore::RunStore(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

Result<RunStore> RunStore::open(RunOptions options) {
  MUSTER_TRY_VOID(check(options));
  Storage& storage = options.storage != nullptr ? *options.storage : real_storage();
  const std::string root = worker_folder(options);
  MUSTER_TRY_VOID(storage.make_folder(root));
  MUSTER_TRY(Journal journal, open_journal(root, options, storage));
  MUSTER_TRY_VOID(remove_leftovers(root, storage));
  remove_other_jobs(options, storage);
  auto implementation =
      std::make_unique<Implementation>(std::move(options), root, storage, std::move(journal));
  MUSTER_TRY_VOID(implementation->read_points());
  return RunStore(std::move(implementation));
}

const std::string& RunStore::folder() const { return implementation_->root(); }
std::vector<PointId> RunStore::points() const { return implementation_->points(); }
Result<> RunStore::save(const Point& point) { return implementation_->save(point); }
Result<Point> RunStore::load(const PointId& id) const { return implementation_->load(id); }
void RunStore::drop(const PointId& id, std::string_view why) { implementation_->drop(id, why); }
Result<> RunStore::finish_call(CallRecord record) { return implementation_->finish_call(std::move(record)); }
std::optional<CallRecord> RunStore::finished(std::uint64_t call) const {
  return implementation_->finished(call);
}
Result<> RunStore::add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash) {
  return implementation_->add_step_hash(call, step, hash);
}

}  // namespace muster::checkpoint
