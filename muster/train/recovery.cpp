#include "muster/train/recovery.h"

#include <fmt/format.h>

#include <filesystem>

#include "muster/train/session.h"

namespace muster::train {
namespace {

class SessionRecovery final : public Recovery {
 public:
  Result<checkpoint::RunStore*> store() override { return session().run_store(); }

  std::uint32_t local_size() const override { return session().local_size(); }

  std::uint32_t rank() const override { return session().rank(); }
  std::uint32_t size() const override { return session().world_size(); }

  Result<std::vector<Words>> gather(const Words& mine) override {
    Words all(mine.size() * session().world_size());
    MUSTER_TRY_VOID(session().call_all([&](Communicator& group) {
      return group.all_gather(mine.data(), all.data(), mine.size() * sizeof(std::uint64_t));
    }));
    std::vector<Words> rows;
    for (auto begin = all.begin(); begin != all.end(); begin += static_cast<std::ptrdiff_t>(mine.size()))
      rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(mine.size()));
    return rows;
  }

  Result<> send(std::uint32_t to, Pieces pieces) override {
    return session().call_all([&](Communicator& all) { return all.send(to, pieces); });
  }
  Result<> receive(std::uint32_t from, WritablePieces pieces) override {
    return session().call_all([&](Communicator& all) { return all.receive(from, pieces); });
  }

  bool lost_epoch(const Error& error) override { return session().lost_epoch(error); }
  Result<> next_epoch() override { return session().next_epoch(); }
  void set_inside(bool inside) override {
    Recovery::set_inside(inside);
    session().set_in_call(inside);
  }
  std::uint64_t finished_calls() const override { return session().finished_calls(); }
  void report_finished_calls(std::uint64_t calls) override { session().report_finished_calls(calls); }
  void report_kept_calls(std::uint64_t calls) override { session().report_kept_calls(calls); }
  void note_rendezvous() override { session().note_rendezvous(); }
  void mark_step(const checkpoint::StepPlace& place) override { session().mark_step(place); }

 private:
  static Session& session() { return *Session::current(); }
};

}  // namespace

std::unique_ptr<checkpoint::Saver> Recovery::make_saver(checkpoint::RunStore& store) {
  return std::make_unique<checkpoint::BackgroundSaver>(store,
                                                       checkpoint::WriteThrottle::beside(local_size()));
}

Recovery* recovery_of_session() {
  // Never destroyed: an end that it holds is given until the process has left.
  static SessionRecovery* const made = new SessionRecovery;
  const Session* session = Session::current();
  return session != nullptr && session->recovers() && !session->in_forked_child() ? made : nullptr;
}

// The store's folder is PATH/job-<job>/worker_<rank>.
std::string recovery_path(const std::string& store_folder) {
  return std::filesystem::path(store_folder).parent_path().parent_path();
}

std::string resuming_line(const std::string& store_folder, std::uint64_t step) {
  std::string name = std::filesystem::path(store_folder).parent_path().filename();
  if (name.starts_with("job-")) name.erase(0, 4);
  return fmt::format("resuming job {} at step {}; delete {} to start fresh", name, step,
                     recovery_path(store_folder));
}

}  // namespace muster::train
