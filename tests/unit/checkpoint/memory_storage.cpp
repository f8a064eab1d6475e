#include "tests/unit/checkpoint/memory_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace muster::checkpoint::testing {
namespace {

using Bytes = std::vector<std::byte>;

struct Node;
using NodePtr = std::shared_ptr<Node>;

// A file or a folder, as it is and as the disk has it.
struct Node {
  bool is_folder = false;
  Bytes bytes = {};
  Bytes synced_bytes = {};
  std::map<std::string, NodePtr, std::less<>> names = {};
  std::map<std::string, NodePtr, std::less<>> synced_names = {};
  int sharers = 0;  // of locks
  bool is_exclusive = false;
};

NodePtr copy(const Node& node) {
  auto made = std::make_shared<Node>(node);
  made->sharers = 0;  // whoever held them is gone
  made->is_exclusive = false;
  for (auto* names : {&made->names, &made->synced_names})
    for (auto& [name, inside] : *names) inside = copy(*inside);
  return made;
}

NodePtr survivor(const Node& node, bool truncate) {
  auto made = std::make_shared<Node>();
  made->is_folder = node.is_folder;
  made->bytes = node.synced_bytes;
  if (!truncate) made->bytes.resize(node.bytes.size());  // a right length, and zeros
  made->synced_bytes = made->bytes;
  for (const auto& [name, inside] : node.synced_names) made->names[name] = survivor(*inside, truncate);
  made->synced_names = made->names;
  return made;
}

// "a", "b", "c" of "/a/b/c".
std::vector<std::string_view> parts(std::string_view path) {
  std::vector<std::string_view> found;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) found.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

}  // namespace

struct MemoryStorage::Disk {
  NodePtr root = std::make_shared<Node>(Node{.is_folder = true});
  Fault fault = {};
  std::size_t operations = 0;
  std::size_t temporary = 0;

  bool is_dead() const { return fault.kind == Fault::Kind::kill && fault.at != 0 && operations >= fault.at; }

  Result<> operation(std::string_view what, const std::string& path) {
    if (is_dead()) return fail(Code::aborted, "the process is gone");
    ++operations;
    const bool fails =
        fault.at != 0 && (fault.kind == Fault::Kind::once ? operations == fault.at : operations >= fault.at);
    if (fails) return fail_errno(fmt::format("cannot {} '{}'", what, path), fault.error_number);
    return {};
  }

  Node* find(std::string_view path) const {
    Node* at = root.get();
    for (const std::string_view part : parts(path)) {
      const auto inside = at->names.find(part);
      if (inside == at->names.end()) return nullptr;
      at = inside->second.get();
    }
    return at;
  }
  // The folder that a path lies in, and the path's last name.
  std::pair<Node*, std::string> place(std::string_view path) const {
    const std::size_t slash = path.rfind('/');
    Node* folder = find(path.substr(0, slash));
    return {folder != nullptr && folder->is_folder ? folder : nullptr, std::string(path.substr(slash + 1))};
  }
};

namespace {

class MemoryOutput final : public OutputFile {
 public:
  using Operation = std::function<Result<>(std::string_view what, const std::string& path)>;
  MemoryOutput(NodePtr node, std::string path, Operation operation)
      : node_(std::move(node)), path_(std::move(path)), operation_(std::move(operation)) {}

  Result<> append(std::span<const std::byte> bytes) override {
    auto allowed = operation_("write", path_);
    if (!allowed && allowed.error().code == Code::aborted) return allowed;  // by a process that is gone
    // A write that fails has written something.
    const auto written = allowed ? bytes : bytes.first(bytes.size() / 2);
    node_->bytes.insert(node_->bytes.end(), written.begin(), written.end());
    return allowed;
  }
  Result<> sync() override {
    MUSTER_TRY_VOID(operation_("sync", path_));
    node_->synced_bytes = node_->bytes;
    return {};
  }

 private:
  NodePtr node_;
  std::string path_;
  Operation operation_;
};

template <class DiskPtr>
std::unique_ptr<OutputFile> output_of(NodePtr node, const std::string& path, DiskPtr disk) {
  return std::make_unique<MemoryOutput>(
      std::move(node), path, [disk = std::move(disk)](std::string_view what, const std::string& at) {
        return disk->operation(what, at);
      });
}

class MemoryLockedFile final : public LockedFile {
 public:
  using Operation = MemoryOutput::Operation;
  MemoryLockedFile(NodePtr node, std::string path, Sharing sharing, Operation operation)
      : node_(std::move(node)), path_(std::move(path)), sharing_(sharing), operation_(std::move(operation)) {
    sharing_ == Sharing::shared ? void(++node_->sharers) : void(node_->is_exclusive = true);
  }
  ~MemoryLockedFile() override {
    sharing_ == Sharing::shared ? void(--node_->sharers) : void(node_->is_exclusive = false);
  }
  MemoryLockedFile(const MemoryLockedFile&) = delete;
  MemoryLockedFile& operator=(const MemoryLockedFile&) = delete;

  Result<std::string> read() const override {
    return std::string(reinterpret_cast<const char*>(node_->bytes.data()), node_->bytes.size());
  }
  Result<> write(std::string_view text) override {
    auto allowed = operation_("write", path_);
    if (!allowed && allowed.error().code == Code::aborted) return allowed;
    const auto bytes = std::as_bytes(std::span(text.data(), allowed ? text.size() : text.size() / 2));
    node_->bytes.assign(bytes.begin(), bytes.end());
    return allowed;
  }

 private:
  NodePtr node_;
  std::string path_;
  Sharing sharing_;
  Operation operation_;
};

class MemoryInput final : public InputFile {
 public:
  MemoryInput(Bytes bytes, std::string path) : bytes_(std::move(bytes)), path_(std::move(path)) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  Result<> read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      return fail(Code::corrupt, fmt::format("'{}' ends at byte {}", path_, bytes_.size()));
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  Bytes bytes_;
  std::string path_;
};

}  // namespace

MemoryStorage::MemoryStorage() : disk_(std::make_shared<Disk>()) {}

void MemoryStorage::set_fault(Fault fault) {
  disk_->fault = fault;
  disk_->operations = 0;
}
std::size_t MemoryStorage::operations() const { return disk_->operations; }
bool MemoryStorage::has_failed() const {
  return disk_->fault.at != 0 && disk_->operations >= disk_->fault.at;
}

MemoryStorage MemoryStorage::after_kill() const {
  MemoryStorage made;
  made.disk_->root = copy(*disk_->root);
  made.disk_->temporary = disk_->temporary;
  made.can_exchange = can_exchange;
  return made;
}

MemoryStorage MemoryStorage::after_power_loss(bool truncate) const {
  MemoryStorage made;
  made.disk_->root = survivor(*disk_->root, truncate);
  made.disk_->temporary = disk_->temporary;
  made.can_exchange = can_exchange;
  return made;
}

bool MemoryStorage::is_synced(const std::string& path) const {
  const Node* const node = disk_->find(path);
  return node != nullptr && node->bytes == node->synced_bytes;
}

std::vector<std::byte>& MemoryStorage::content(const std::string& path) {
  Node* node = disk_->find(path);
  MUSTER_CHECK(node != nullptr && !node->is_folder, "no such file in memory");
  return node->bytes;
}

std::vector<std::string> MemoryStorage::paths() const {
  std::vector<std::string> found;
  const std::function<void(const Node&, const std::string&)> walk = [&](const Node& node,
                                                                        const std::string& path) {
    if (!node.is_folder) found.push_back(path);
    for (const auto& [name, inside] : node.names) walk(*inside, path + '/' + name);
  };
  walk(*disk_->root, "");
  return found;
}

Result<std::vector<std::byte>> MemoryStorage::read(const std::string& path) const {
  const Node* node = disk_->find(path);
  if (node == nullptr) return fail_errno(fmt::format("cannot open '{}'", path), ENOENT);
  if (node->is_folder) return fail(Code::io, fmt::format("cannot read '{}': it is a folder", path));
  return node->bytes;
}

Result<> write_beside(Storage& storage, const std::string& temporary, const std::string& path,
                      std::span<const std::span<const std::byte>> pieces) {
  const auto write = [&]() -> Result<> {
    MUSTER_TRY(const auto file, storage.create(temporary));
    for (const auto piece : pieces) MUSTER_TRY_VOID(file->append(piece));
    MUSTER_TRY_VOID(file->sync());
    return storage.rename(temporary, path);
  };
  if (auto written = write(); !written) {
    (void)storage.remove(temporary);
    return written;
  }
  return storage.sync_folder(path.substr(0, path.rfind('/')));
}

// Folders come by themselves here, as in MemoryFiles.
Result<> MemoryStorage::write_pieces(const std::string& path,
                                     std::span<const std::span<const std::byte>> pieces) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (disk_->find(folder) == nullptr) MUSTER_TRY_VOID(make_folder(folder));
  return write_beside(*this, fmt::format("{}.{:06}", path, ++disk_->temporary), path, pieces);
}

Result<std::vector<std::string>> MemoryStorage::list(const std::string& folder) const {
  const Node* node = disk_->find(folder);
  if (node == nullptr) return fail_errno(fmt::format("cannot list folder '{}'", folder), ENOENT);
  if (!node->is_folder) return fail_errno(fmt::format("cannot list folder '{}'", folder), ENOTDIR);
  std::vector<std::string> names;
  for (const auto& [name, inside] : node->names) names.push_back(name);
  return names;
}

Result<> MemoryStorage::make_folder(const std::string& path) {
  if (disk_->find(path) != nullptr) return {};
  MUSTER_TRY_VOID(disk_->operation("make folder", path));
  Node* at = disk_->root.get();
  for (const std::string_view part : parts(path)) {
    NodePtr& inside = at->names[std::string(part)];
    if (inside == nullptr) inside = std::make_shared<Node>(Node{.is_folder = true});
    at->synced_names[std::string(part)] = inside;
    at = inside.get();
  }
  return {};
}

Result<std::string> MemoryStorage::make_temporary_folder(const std::string& prefix) {
  const std::string path = fmt::format("{}{:06}", prefix, ++disk_->temporary);
  MUSTER_TRY_VOID(disk_->operation("make folder", path));
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr) return fail_errno(fmt::format("cannot make folder '{}'", path), ENOENT);
  folder->names[name] = std::make_shared<Node>(Node{.is_folder = true});
  return path;
}

Result<std::unique_ptr<OutputFile>> MemoryStorage::create(const std::string& path) {
  MUSTER_TRY_VOID(disk_->operation("create", path));
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr) return fail_errno(fmt::format("cannot create '{}'", path), ENOENT);
  if (folder->names.contains(name)) return fail_errno(fmt::format("cannot create '{}'", path), EEXIST);
  folder->names[name] = std::make_shared<Node>();
  return output_of(folder->names[name], path, disk_);
}

Result<std::unique_ptr<OutputFile>> MemoryStorage::append_to(const std::string& path,
                                                             std::uint64_t size_bytes) {
  MUSTER_TRY_VOID(disk_->operation("open", path));
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr) return fail_errno(fmt::format("cannot create '{}'", path), ENOENT);
  NodePtr& node = folder->names[name];
  if (node == nullptr) node = std::make_shared<Node>();
  node->bytes.resize(size_bytes);
  return output_of(node, path, disk_);
}

Result<std::unique_ptr<InputFile>> MemoryStorage::open(const std::string& path) const {
  MUSTER_TRY(Bytes bytes, read(path));
  return std::make_unique<MemoryInput>(std::move(bytes), path);
}

Result<> MemoryStorage::rename(const std::string& from, const std::string& to) {
  MUSTER_TRY_VOID(disk_->operation("rename", from));
  const auto [source, old_name] = disk_->place(from);
  const auto [target, new_name] = disk_->place(to);
  if (source == nullptr || target == nullptr || !source->names.contains(old_name))
    return fail_errno(fmt::format("cannot rename '{}' to '{}'", from, to), ENOENT);
  const auto there = target->names.find(new_name);
  if (there != target->names.end() && there->second->is_folder && !there->second->names.empty())
    return fail_errno(fmt::format("cannot rename '{}' to '{}'", from, to), ENOTEMPTY);
  target->names[new_name] = source->names[old_name];
  source->names.erase(old_name);
  return {};
}

Result<> MemoryStorage::exchange(const std::string& first, const std::string& second) {
  if (!can_exchange) return fail(Code::not_provided, "names cannot be exchanged here");
  MUSTER_TRY_VOID(disk_->operation("exchange", first));
  const auto [one, name] = disk_->place(first);
  const auto [other, other_name] = disk_->place(second);
  if (one == nullptr || other == nullptr || !one->names.contains(name) || !other->names.contains(other_name))
    return fail_errno(fmt::format("cannot exchange '{}' and '{}'", first, second), ENOENT);
  std::swap(one->names.at(name), other->names.at(other_name));
  return {};
}

Result<> MemoryStorage::sync_folder(const std::string& path) {
  MUSTER_TRY_VOID(disk_->operation("sync folder", path));
  Node* node = disk_->find(path);
  if (node == nullptr) return fail_errno(fmt::format("cannot sync folder '{}'", path), ENOENT);
  node->synced_names = node->names;
  return {};
}

Result<> MemoryStorage::remove(const std::string& path) {
  MUSTER_TRY_VOID(disk_->operation("remove", path));
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr || folder->names.erase(name) == 0)
    return fail_errno(fmt::format("cannot remove '{}'", path), ENOENT);
  return {};
}

Result<> MemoryStorage::remove_folder(const std::string& path) {
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr || !folder->names.contains(name)) return {};
  // One name after the other, as the real one does: a kill leaves some.
  for (auto& inside = folder->names.at(name)->names; !inside.empty(); inside.erase(inside.begin()))
    MUSTER_TRY_VOID(disk_->operation("remove", path + '/' + inside.begin()->first));
  MUSTER_TRY_VOID(disk_->operation("remove folder", path));
  folder->names.erase(name);
  return {};
}

Result<std::unique_ptr<LockedFile>> MemoryStorage::lock(const std::string& path, Sharing sharing,
                                                        std::chrono::milliseconds) {
  MUSTER_TRY_VOID(disk_->operation("lock", path));
  const auto [folder, name] = disk_->place(path);
  if (folder == nullptr) return fail_errno(fmt::format("cannot open '{}'", path), ENOENT);
  NodePtr& node = folder->names[name];
  if (node == nullptr) node = std::make_shared<Node>();
  if (node->is_exclusive || (sharing == Sharing::exclusive && node->sharers > 0))
    return fail(Code::refused, fmt::format("'{}' is locked", path));
  return std::make_unique<MemoryLockedFile>(
      node, path, sharing,
      [disk = disk_](std::string_view what, const std::string& at) { return disk->operation(what, at); });
}

Result<bool> MemoryStorage::is_locked(const std::string& path) const {
  const Node* node = disk_->find(path);
  return node != nullptr && (node->is_exclusive || node->sharers > 0);
}

}  // namespace muster::checkpoint::testing
