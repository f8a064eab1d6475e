#include "muster/train/recovery.h"

#include <fmt/format.h>

#include <filesystem>

#include "muster/train/session.h"

namespace muster::train {

std::unique_ptr<checkpoint::Saver> Recovery::make_saver(checkpoint::RunStore& store) {
  return std::make_unique<checkpoint::BackgroundSaver>(store, clock(),
                                                       checkpoint::WriteThrottle::beside(local_size()));
}

Recovery* recovery_of_session() {
  Session* const session = Session::current();
  if (session == nullptr) return nullptr;
  const Membership& membership = session->membership();
  return membership.recovers() && !membership.in_forked_child() ? &session->recovery() : nullptr;
}

// The store's folder is PATH/job-<job>/worker_<rank>.
std::string recovery_path(const std::string& store_folder) {
  return std::filesystem::path(store_folder).parent_path().parent_path();
}

std::string resuming_line(const std::string& store_folder, std::uint64_t step) {
  std::string name = std::filesystem::path(store_folder).parent_path().filename();
  if (name.starts_with("job-")) name.erase(0, 4);
  return fmt::format("resuming job {} at step {}; delete {} of every process to start fresh", name, step,
                     recovery_path(store_folder));
}

}  // namespace muster::train
