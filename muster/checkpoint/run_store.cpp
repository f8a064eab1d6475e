#include "muster/checkpoint/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <utility>

#include "muster/checkpoint/begun.h"
#include "muster/checkpoint/claim.h"
#include "muster/checkpoint/journal.h"
#include "muster/checkpoint/ledger.h"
#include "muster/checkpoint/ownership.h"
#include "muster/checkpoint/point_files.h"
#include "muster/checkpoint/retention.h"
#include "muster/checkpoint/run_folders.h"

namespace muster::checkpoint {
namespace {

// Workers tell each other of the newest three (train/recovering_call.cpp); what is being saved meanwhile may
// push out the fourth.
constexpr std::size_t keep_steps_min = 4;

Result<> check(const RunOptions& options) {
  if (options.folder.empty())
    return fail(Code::invalid_argument, "recovery points need a folder: MS_RECOVERY_PATH");
  if (!is_job(options.job))
    return fail(Code::invalid_argument,
                fmt::format("job '{}': the id of a job is 16 hexadecimal digits", options.job));
  if (options.rank >= options.world_size)
    return fail(Code::invalid_argument,
                fmt::format("rank {} is none of {} workers", options.rank, options.world_size));
  return {};
}

// A file where a folder has to be is a mistake that no waiting mends.
Result<> check_path(const std::string& folder, const Storage& storage) {
  for (std::filesystem::path at = folder; !at.empty() && at != at.parent_path(); at = at.parent_path())
    if (storage.open(at))
      return fail(Code::invalid_argument,
                  fmt::format("MS_RECOVERY_PATH='{}' cannot be used: '{}' is a file, not a folder", folder,
                              at.string()));
  return {};
}

// What may pass by itself: a disk that is full or cannot be written, a share that is away.
bool may_pass(const Error& error) { return error.code == Code::io || error.code == Code::not_found; }

// Whom the folder belongs to stands in the journal. One that cannot be read is put aside: what the calls
// returned is lost then, their end points are not.
Result<Journal> open_journal(const std::string& root, const RunOptions& options, Storage& storage) {
  const RunIdentity identity{.job = options.job, .world_size = options.world_size, .rank = options.rank};
  const std::string path = fmt::format("{}/{}", root, journal_file);
  auto journal = Journal::open(path, identity, storage);
  if (!journal && journal.error().code == Code::corrupt) {
    log::warning(fmt::format("{}; it is put aside as {}{}", journal.error().message, path, damaged_suffix));
    MUSTER_TRY_VOID(storage.rename(path, path + std::string(damaged_suffix)));
    journal = Journal::open(path, identity, storage);
  }
  if (!journal) return journal;
  const RunIdentity& found = journal->content().identity;
  if (found.world_size != options.world_size)
    return fail(Code::refused,
                fmt::format("the recovery points in '{}' are those of a job of {} workers, and this one "
                            "has {}: start {} workers, or delete '{}' to start fresh",
                            root, found.world_size, options.world_size, found.world_size, options.folder));
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
  Implementation(RunOptions options, std::string root, Storage& storage)
      : options_(std::move(options)),
        root_(std::move(root)),
        storage_(storage),
        ownership_(root_, storage, options_.patience, options_.epoch),
        ledger_(fmt::format("{}/{}", root_, ledger_file), storage) {}
  ~Implementation() { flush_ledger(); }

  Result<> open();
  void look_again();
  const std::string& root() const { return root_; }
  std::string problem() const;
  std::string unread() const;
  std::optional<std::string> lost() const { return is_attached_ ? ownership_.lost() : std::nullopt; }
  std::vector<PointId> points() const;
  bool is_shared(const PointId& id) const;
  void set_committed(const PointId& id);
  void call_is_finished(std::uint64_t call);
  void note_begun(std::uint64_t call);
  bool has_begun(std::uint64_t call) const {
    const std::lock_guard lock(index_mutex_);
    return begun_ && *begun_ <= call;
  }
  Result<> save(const Point& point);
  Result<Point> load(const PointId& id) const;
  void drop(const PointId& id, std::string_view why);
  void pass_over(const PointId& id, std::string_view why);
  Result<> finish_call(CallRecord record);
  std::optional<CallRecord> finished(std::uint64_t call) const;
  std::uint64_t finished_calls() const;
  std::optional<PointId> committed() const {
    const std::lock_guard lock(index_mutex_);
    return common_.point;
  }
  Result<> set_done();
  Result<> add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash);

 private:
  // While it lives no other writes to the folder: no other thread, and no other process.
  struct Writing {
    std::unique_lock<std::mutex> thread;
    Hold process;
  };

  std::string path_of(const PointId& id) const { return fmt::format("{}/{}", root_, folder_name(id)); }
  std::string path_of(std::string_view file) const { return fmt::format("{}/{}", root_, file); }

  Result<Writing> begin_writing();
  Result<Hold> attach();
  Result<Hold> take_folder();
  void set_problem(std::string problem);
  void set_unread(std::string why);
  void read_what_is_there(const Error& not_written);
  Result<> read_points(bool may_write);
  Result<Manifest> read_own_manifest(const PointId& id) const;
  const JournalContent& calls() const { return journal_ ? journal_->content() : calls_read_; }

  Result<> write(const Point& point);
  tl::unexpected<Error> not_saved(const Point& point, const Error& error) const;
  void put_aside(const PointId& id, std::string_view why);
  void remove_needless(const PointId& saved);
  void flush_ledger();

  const RunOptions options_;
  const std::string root_;
  Storage& storage_;
  std::mutex save_mutex_;  // one save at a time

  std::mutex writing_mutex_;  // behind save_mutex_
  Ownership ownership_;
  std::optional<JobClaim> claim_;
  std::atomic<bool> is_attached_ = false;
  std::optional<Error> lost_;  // to a newer incarnation: for good
  Common common_kept_;         // on the disk

  mutable std::mutex index_mutex_;  // the innermost
  StoredPoints points_;
  Common common_;
  std::optional<std::uint64_t> begun_;
  std::string problem_;
  std::string unread_;
  std::optional<Journal> journal_;
  JournalContent calls_read_;  // where there is no journal to write to
  Ledger ledger_;
};

// ---- Opening ----------------------------------------------------------------------------------------------

Result<> RunStore::Implementation::open() {
  const auto opened = begin_writing();
  if (opened) return {};
  if (!may_pass(opened.error())) return fail(opened.error());
  ownership_.note_owner();
  read_what_is_there(opened.error());
  log::error(
      fmt::format("no recovery points can be kept in '{}': {}. The job goes on; while it is so, this worker "
                  "has only what the others hold. Each save tries again",
                  root_, opened.error().message));
  return {};
}

Result<RunStore::Implementation::Writing> RunStore::Implementation::begin_writing() {
  std::unique_lock thread(writing_mutex_);
  if (lost_) return fail(*lost_);
  if (is_attached_) {
    auto held = ownership_.hold();
    if (held) return Writing{std::move(thread), *std::move(held)};
    if (held.error().code == Code::refused) {
      lost_ = held.error();
      set_problem(lost_->message);
      set_unread(lost_->message);
    }
    if (held.error().code != Code::not_found) return fail(std::move(held).error());
    is_attached_ = false;  // the folder has vanished, or a late process was there
    claim_.reset();
  }
  auto held = attach();
  set_problem(held ? "" : held.error().message);
  if (!held) return fail(std::move(held).error());
  is_attached_ = true;
  return Writing{std::move(thread), *std::move(held)};
}

Result<Hold> RunStore::Implementation::attach() {
  if (!claim_) {
    MUSTER_TRY(claim_, JobClaim::take(options_, storage_));
  }
  auto held = take_folder();
  if (!held) claim_.reset();
  return held;
}

Result<Hold> RunStore::Implementation::take_folder() {
  MUSTER_TRY_VOID(storage_.make_folder(root_));
  MUSTER_TRY(Hold held, ownership_.take());
  MUSTER_TRY(Journal journal, open_journal(root_, options_, storage_));
  MUSTER_TRY_VOID(remove_leftovers(root_, storage_));
  if (storage_.open(path_of(done_file))) {
    MUSTER_TRY_VOID(storage_.remove(path_of(done_file)));
    MUSTER_TRY_VOID(storage_.sync_folder(root_));
  }
  // What this process knew before the folder vanished.
  for (const auto& [call, record] : calls().records)
    if (!journal.content().records.contains(call)) MUSTER_TRY_VOID(journal.add(record));
  {
    const std::lock_guard lock(index_mutex_);
    journal_ = std::move(journal);
  }
  // What is found counts for others from now on; who gave it its name may have died before its sync.
  MUSTER_TRY_VOID(storage_.sync_folder(root_));
  MUSTER_TRY_VOID(read_points(true));
  return held;
}

// Whose the folder was when this process came stays what it was: another process may have taken it since.
void RunStore::Implementation::look_again() {
  const auto opened = begin_writing();
  if (opened || !may_pass(opened.error())) return;
  const std::lock_guard thread(writing_mutex_);
  if (!is_attached_) read_what_is_there(opened.error());
}

// Of a folder that cannot be written. One that is not there held nothing, unless the path to it is away.
void RunStore::Implementation::read_what_is_there(const Error& not_written) {
  const auto is_unread = [&](const Error& error) {
    return error.code != Code::not_found || not_written.code == Code::not_found;
  };
  auto journal = read_journal(path_of(journal_file), storage_);
  std::string unread = !journal && is_unread(journal.error()) ? journal.error().message : "";
  if (journal) {
    const RunIdentity mine{.job = options_.job, .world_size = options_.world_size, .rank = options_.rank};
    const std::lock_guard lock(index_mutex_);
    if (journal->identity == mine) calls_read_ = *std::move(journal);
  }
  const auto read = read_points(false);
  if (!read && read.error().code != Code::not_found) log::warning(read.error().message);
  if (!read) set_unread(is_unread(read.error()) ? read.error().message : "");
  if (!unread.empty()) set_unread(std::move(unread));
}

// A point that cannot be read at this moment is not held, and left where it is.
Result<> RunStore::Implementation::read_points(bool may_write) {
  MUSTER_TRY(const std::vector<std::string> names, storage_.list(root_));
  StoredPoints found;
  std::string unread;
  for (const std::string& name : names) {
    const auto id = point_of_folder(name);
    if (!id) continue;
    const auto manifest = read_own_manifest(*id);
    if (manifest)
      found[*id] = {.signature = manifest->signature(), .is_shared = manifest->is_shared};
    else if (may_write &&
             (manifest.error().code == Code::corrupt || manifest.error().code == Code::not_found))
      put_aside(*id, manifest.error().message);
    else {
      log::warning(fmt::format("a recovery point is not used: {}", manifest.error().message));
      if (id->call >= finished_calls()) unread = manifest.error().message;
    }
  }
  common_kept_ = read_common(path_of(common_file), storage_).value_or(Common{});
  const auto begun = read_begun(path_of(begun_file), storage_);
  const std::lock_guard lock(index_mutex_);
  points_ = std::move(found);
  begun_ = begun;
  unread_ = std::move(unread);
  if (common_ == Common{}) common_ = common_kept_;
  return {};
}

Result<Manifest> RunStore::Implementation::read_own_manifest(const PointId& id) const {
  MUSTER_TRY(Manifest manifest, read_manifest(path_of(id), storage_));
  if (manifest.id != id || manifest.job != options_.job || manifest.world_size != options_.world_size ||
      manifest.rank != options_.rank)
    return fail(Code::corrupt,
                fmt::format("'{}' is {} of worker {} of {} in job {}", path_of(id), to_string(manifest.id),
                            manifest.rank, manifest.world_size, manifest.job));
  return manifest;
}

void RunStore::Implementation::set_problem(std::string problem) {
  const std::lock_guard lock(index_mutex_);
  problem_ = std::move(problem);
}

void RunStore::Implementation::set_unread(std::string why) {
  const std::lock_guard lock(index_mutex_);
  unread_ = std::move(why);
}

// ---- Saving -----------------------------------------------------------------------------------------------

Result<> RunStore::Implementation::save(const Point& point) {
  const std::lock_guard one_at_a_time(save_mutex_);
  flush_ledger();
  if (const auto written = write(point); !written) return not_saved(point, written.error());
  return {};
}

// The folder is held for moments only: writing takes its time.
Result<> RunStore::Implementation::write(const Point& point) {
  if (const auto writing = begin_writing(); !writing) return fail(writing.error());
  const Manifest head{.job = options_.job,
                      .world_size = options_.world_size,
                      .rank = options_.rank,
                      .id = point.id,
                      .is_shared = point.is_shared,
                      .own = point.own};
  MUSTER_TRY(const PreparedPoint prepared, prepare_point(point, head, root_, storage_));
  const auto writing = begin_writing();
  if (!writing) {
    (void)storage_.remove_folder(prepared.folder);
    return fail(writing.error());
  }
  MUSTER_TRY_VOID(publish_point(prepared, root_, storage_));
  {
    const std::lock_guard lock(index_mutex_);
    points_[point.id] = {.signature = prepared.manifest.signature(), .is_shared = point.is_shared};
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

// What is removed is decided by what all are known to hold, so that is on the disk first: a worker that comes
// back must not know less. A point that cannot be removed does no harm but to the disk.
void RunStore::Implementation::remove_needless(const PointId& saved) {
  std::vector<PointId> ids;
  Common common;
  {
    const std::lock_guard lock(index_mutex_);
    common = common_;
    ids = needless(points_, saved, common, std::max(options_.keep_steps, keep_steps_min));
  }
  if (common != common_kept_) {
    if (const auto kept = write_common(path_of(common_file), common, storage_); !kept) {
      log::warning(fmt::format("recovery points that are no more needed stay: {}", kept.error().message));
      return;
    }
    common_kept_ = common;
  }
  for (const PointId& id : ids) {
    {
      const std::lock_guard lock(index_mutex_);
      points_.erase(id);
    }
    if (const auto removed = remove_point(path_of(id), root_, storage_); !removed)
      log::warning(fmt::format("a recovery point that is no more needed stays: {}", removed.error().message));
  }
}

// ---- What others hold -------------------------------------------------------------------------------------

void RunStore::Implementation::set_committed(const PointId& id) {
  const std::lock_guard lock(index_mutex_);
  common_.point = id;
}

void RunStore::Implementation::call_is_finished(std::uint64_t call) {
  const PointId end{.call = call, .moment = PointId::Moment::end};
  const std::lock_guard lock(index_mutex_);
  common_.finished_calls = std::max(common_.finished_calls, call + 1);
  if (!common_.point || *common_.point < end) common_.point = end;
}

// Of a folder that has vanished it is not known what others have seen in it: it is not taken again for this.
void RunStore::Implementation::note_begun(std::uint64_t call) {
  const std::lock_guard thread(writing_mutex_);
  if (lost_ || !is_attached_ || has_begun(call)) return;
  const auto held = ownership_.hold();
  const auto written = held ? write_begun(path_of(begun_file), call, storage_) : Result<>(fail(held.error()));
  if (!written) {
    log::warning(fmt::format("that call {} begins is not noted: {}", call, written.error().message));
    return;
  }
  const std::lock_guard lock(index_mutex_);
  begun_ = call;
}

// ---- The rest ---------------------------------------------------------------------------------------------

std::string RunStore::Implementation::problem() const {
  const std::lock_guard lock(index_mutex_);
  return problem_;
}

std::string RunStore::Implementation::unread() const {
  const std::lock_guard lock(index_mutex_);
  return unread_;
}

std::vector<PointId> RunStore::Implementation::points() const {
  const std::lock_guard lock(index_mutex_);
  std::vector<PointId> ids;
  for (const auto& [id, point] : points_) ids.push_back(id);
  return ids;
}

bool RunStore::Implementation::is_shared(const PointId& id) const {
  const std::lock_guard lock(index_mutex_);
  const auto found = points_.find(id);
  return found != points_.end() && found->second.is_shared;
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
  const auto writing = begin_writing();
  if (writing)
    put_aside(id, why);
  else
    log::warning(
        fmt::format("the recovery point '{}' is damaged and is not used{}{}; it stays where it is: {}",
                    path_of(id), why.empty() ? "" : ": ", why, writing.error().message));
}

// Who lacks it for this reason does not say that nothing was there.
void RunStore::Implementation::pass_over(const PointId& id, std::string_view why) {
  log::warning(fmt::format("the recovery point '{}' cannot be read at this moment and is not used: {}",
                           path_of(id), why));
  set_unread(std::string(why));
  const std::lock_guard lock(index_mutex_);
  points_.erase(id);
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
  const auto writing = begin_writing();
  if (!writing) return fail(writing.error());
  const std::lock_guard lock(index_mutex_);
  return journal_->add(std::move(record));
}

std::optional<CallRecord> RunStore::Implementation::finished(std::uint64_t call) const {
  const std::lock_guard lock(index_mutex_);
  const auto found = calls().records.find(call);
  if (found == calls().records.end()) return std::nullopt;
  return found->second;
}

std::uint64_t RunStore::Implementation::finished_calls() const {
  const std::lock_guard lock(index_mutex_);
  std::uint64_t count = 0;
  while (calls().records.contains(count)) ++count;
  return count;
}

// Another job may use the path from now on.
Result<> RunStore::Implementation::set_done() {
  const std::lock_guard one_at_a_time(save_mutex_);
  flush_ledger();
  const auto writing = begin_writing();
  if (!writing) return fail(writing.error());
  MUSTER_TRY_VOID(storage_.write(path_of(done_file), {}));
  is_attached_ = false;
  claim_.reset();
  return {};
}

Result<> RunStore::Implementation::add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash) {
  if (ledger_.add(call, step, hash)) flush_ledger();
  return {};
}

// Where nothing can be kept the hashes are forgotten: they must not fill the memory.
void RunStore::Implementation::flush_ledger() {
  if (!is_attached_) ledger_.forget();
  if (ledger_.is_empty()) return;
  const auto writing = begin_writing();
  const Result<> flushed = writing ? ledger_.flush() : fail(writing.error());
  if (!flushed)
    log::warning(
        fmt::format("the hashes of some steps are lost for `muster verify`: {}", flushed.error().message));
}

// ---- RunStore ---------------------------------------------------------------------------------------------

RunStore::RunStore(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

Result<RunStore> RunStore::open(RunOptions options) {
  MUSTER_TRY_VOID(check(options));
  Storage& storage = options.storage != nullptr ? *options.storage : real_storage();
  MUSTER_TRY_VOID(check_path(options.folder, storage));
  std::string root = worker_folder(options);
  auto implementation = std::make_unique<Implementation>(std::move(options), std::move(root), storage);
  MUSTER_TRY_VOID(implementation->open());
  return RunStore(std::move(implementation));
}

const std::string& RunStore::folder() const { return implementation_->root(); }
std::string RunStore::problem() const { return implementation_->problem(); }
std::string RunStore::unread() const { return implementation_->unread(); }
void RunStore::look_again() { implementation_->look_again(); }
std::optional<std::string> RunStore::lost() const { return implementation_->lost(); }
std::vector<PointId> RunStore::points() const { return implementation_->points(); }
bool RunStore::is_shared(const PointId& id) const { return implementation_->is_shared(id); }
std::optional<PointId> RunStore::committed() const { return implementation_->committed(); }
void RunStore::set_committed(const PointId& id) { implementation_->set_committed(id); }
void RunStore::note_begun(std::uint64_t call) { implementation_->note_begun(call); }
bool RunStore::has_begun(std::uint64_t call) const { return implementation_->has_begun(call); }
void RunStore::call_is_finished(std::uint64_t call) { implementation_->call_is_finished(call); }
Result<> RunStore::save(const Point& point) { return implementation_->save(point); }
Result<Point> RunStore::load(const PointId& id) const { return implementation_->load(id); }
void RunStore::drop(const PointId& id, std::string_view why) { implementation_->drop(id, why); }
void RunStore::pass_over(const PointId& id, std::string_view why) { implementation_->pass_over(id, why); }
Result<> RunStore::finish_call(CallRecord record) { return implementation_->finish_call(std::move(record)); }
std::optional<CallRecord> RunStore::finished(std::uint64_t call) const {
  return implementation_->finished(call);
}
std::uint64_t RunStore::finished_calls() const { return implementation_->finished_calls(); }
Result<> RunStore::set_done() { return implementation_->set_done(); }
Result<> RunStore::add_step_hash(std::uint64_t call, std::uint64_t step, std::uint64_t hash) {
  return implementation_->add_step_hash(call, step, hash);
}

}  // namespace muster::checkpoint
