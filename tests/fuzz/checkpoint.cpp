// The files of checkpoints and recovery points.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "muster/checkpoint/begun.h"
#include "muster/checkpoint/format.h"
#include "muster/checkpoint/journal.h"
#include "muster/checkpoint/ledger.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/retention.h"
#include "muster/checkpoint/safetensors.h"

using namespace muster;
using namespace muster::checkpoint;

namespace {

class Bytes final : public InputFile {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  Result<> read_at(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      return fail(Code::corrupt, "the file ends before");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

// One file, that can only be read.
class OneFile final : public Storage {
 public:
  explicit OneFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<std::vector<std::byte>> read(const std::string&) const override {
    return std::vector<std::byte>(bytes_.begin(), bytes_.end());
  }
  Result<std::unique_ptr<InputFile>> open(const std::string&) const override {
    return std::make_unique<Bytes>(bytes_);
  }
  Result<> write_pieces(const std::string&, std::span<const std::span<const std::byte>>) override {
    return no();
  }
  Result<std::vector<std::string>> list(const std::string&) const override { return no(); }
  Result<> make_folder(const std::string&) override { return no(); }
  Result<std::string> make_temporary_folder(const std::string&) override { return no(); }
  Result<std::unique_ptr<OutputFile>> create(const std::string&) override { return no(); }
  Result<std::unique_ptr<OutputFile>> append_to(const std::string&, std::uint64_t) override { return no(); }
  Result<> rename(const std::string&, const std::string&) override { return no(); }
  Result<> exchange(const std::string&, const std::string&) override { return no(); }
  Result<> sync_folder(const std::string&) override { return no(); }
  Result<> remove(const std::string&) override { return no(); }
  Result<> remove_folder(const std::string&) override { return no(); }
  Result<std::unique_ptr<LockedFile>> lock(const std::string&, Sharing, std::chrono::milliseconds) override {
    return no();
  }
  Result<bool> is_locked(const std::string&) const override { return no(); }

 private:
  static tl::unexpected<Error> no() { return fail(Code::not_provided, "this storage holds one file"); }
  std::span<const std::byte> bytes_;
};

void read_tensors(std::span<const std::byte> bytes) {
  const Bytes file(bytes);
  const auto header = safetensors::read_header(file, "a.safetensors");
  if (!header) return;
  for (const safetensors::Place& place : header->places) {
    fuzz::expect(place.begin <= place.end && place.end <= bytes.size());
    static_cast<void>(safetensors::read_tensor(file, place));
  }
}

// What was taken can be multiplied and written again.
void read_entries(std::span<const std::byte> bytes) {
  const auto entries = decode(bytes, "a.ckpt");
  if (!entries) return;
  for (const Entry& entry : *entries) {
    std::int64_t product = 1;
    for (const std::int64_t size : entry.value.shape())
      fuzz::expect(!__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product));
  }
  fuzz::expect(decode(encode(*entries), "again.ckpt").has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t what = input.byte() % 6;
  const OneFile storage(input.rest());
  if (what == 0) {
    const auto manifest = decode_manifest(input.text(), "manifest.json");
    if (manifest) fuzz::expect(encode_manifest(*manifest).has_value());
  } else if (what == 1) {
    read_tensors(input.rest());
  } else if (what == 2) {
    static_cast<void>(read_journal("journal", storage));
  } else if (what == 3) {
    static_cast<void>(read_ledger("ledger", storage));
  } else if (what == 4) {
    read_entries(input.rest());
  } else {
    static_cast<void>(read_common("common", storage));
    static_cast<void>(read_begun("begun", storage));
  }
  return 0;
}
