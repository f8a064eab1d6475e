#include "muster/checkpoint/storage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/unit/checkpoint/memory_storage.h"

namespace muster::checkpoint {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Both implementations keep one contract.
class StorageContract : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      ASSERT_TRUE(memory_.make_folder(root_));
      return;
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-storage-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    if (GetParam()) std::filesystem::remove_all(root_);
  }
  Storage& storage() { return GetParam() ? real_storage() : static_cast<Storage&>(memory_); }
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, std::string_view text) {
    auto file = storage().create(path(name));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->append(bytes_of(text)));
    ASSERT_TRUE((*file)->sync());
  }
  std::string text(const std::string& name) {
    const auto bytes = storage().read(path(name));
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                 : bytes.error().message;
  }

  std::string root_ = "/somewhere";
  testing::MemoryStorage memory_;
};

TEST_P(StorageContract, CreatesNoFileThatIsThere) {
  write("a", "one");
  EXPECT_EQ(text("a"), "one");
  EXPECT_FALSE(storage().create(path("a")));
  EXPECT_EQ(text("a"), "one");
}

// Large files go to the disk in blocks: every size and every way to hand over the bytes gives the same file.
TEST_P(StorageContract, KeepsEachByteOfFilesAroundTheSizesOfBlocks) {
  constexpr std::size_t block = std::size_t{4} << 20;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, block - 1, block,
                                 block + 1, 3 * block, 3 * block + 4097}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>((i * 2654435761U) >> 13);
    const auto first = bytes_of(content).first(size / 3);
    const auto rest = bytes_of(content).subspan(size / 3);
    const std::string name = std::to_string(size);
    auto file = storage().create(path(name));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->append(first));
    ASSERT_TRUE((*file)->append(rest));
    ASSERT_TRUE((*file)->sync());
    EXPECT_TRUE(text(name) == content) << size;
    const std::array pieces{first, rest};
    ASSERT_TRUE(storage().write_pieces(path("pieces " + name), pieces));
    EXPECT_TRUE(text("pieces " + name) == content) << size;
  }
}

// What lies in memory as in the file is written from where it is; it may begin and end anywhere in a page.
TEST_P(StorageContract, KeepsEachByteOfLargePiecesInPages) {
  constexpr std::size_t page = 4096;
  const std::vector<std::size_t> cuts{0, page, 300 * page, 700 * page + 5, 1100 * page + 7, 20'000'000};
  std::string content(cuts.back() + page, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>((i * 2654435761U) >> 13);
  const std::size_t to_page = page - reinterpret_cast<std::uintptr_t>(content.data()) % page;
  for (const std::size_t shift : {std::size_t{0}, std::size_t{64}}) {  // as in the file, and beside it
    const std::string name = std::to_string(shift);
    auto file = storage().create(path(name));
    ASSERT_TRUE(file) << file.error().message;
    const auto whole = bytes_of(content).subspan((to_page + shift) % page, cuts.back());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      ASSERT_TRUE((*file)->append(whole.subspan(cuts[i], cuts[i + 1] - cuts[i])));
    ASSERT_TRUE((*file)->sync());
    EXPECT_TRUE(text(name) == content.substr((to_page + shift) % page, cuts.back())) << shift;
  }
}

TEST_P(StorageContract, AppendsBehindWhatIsToStay) {
  write("a", "one two");
  ASSERT_TRUE(storage().append_to(path("a"), 4).value()->append(bytes_of("three")));
  EXPECT_EQ(text("a"), "one three");
  ASSERT_TRUE(storage().append_to(path("new"), 0).value()->append(bytes_of("1")));
  EXPECT_EQ(text("new"), "1");
}

TEST_P(StorageContract, ReadsPiecesOfAFile) {
  write("a", "0123456789");
  const auto file = storage().open(path("a")).value();
  EXPECT_EQ(file->size_bytes(), 10u);
  std::string piece(4, ' ');
  ASSERT_TRUE(file->read_at(3, std::as_writable_bytes(std::span(piece))));
  EXPECT_EQ(piece, "3456");
  const auto behind = file->read_at(8, std::as_writable_bytes(std::span(piece)));
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().code, Code::corrupt);
  EXPECT_EQ(storage().open(path("missing")).error().code, Code::not_found);
}

TEST_P(StorageContract, MakesTemporaryFoldersOfTheirOwn) {
  const auto one = storage().make_temporary_folder(path(".new-"));
  const auto other = storage().make_temporary_folder(path(".new-"));
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  EXPECT_TRUE(one->starts_with(path(".new-")));
}

TEST_P(StorageContract, RenamesOntoNoFolderThatHasSomething) {
  ASSERT_TRUE(storage().make_folder(path("a")));
  ASSERT_TRUE(storage().make_folder(path("b")));
  write("a/x", "a");
  write("b/x", "b");
  EXPECT_FALSE(storage().rename(path("a"), path("b")));
  EXPECT_EQ(text("b/x"), "b");
  ASSERT_TRUE(storage().rename(path("a"), path("c")));
  EXPECT_EQ(text("c/x"), "a");
  ASSERT_TRUE(storage().exchange(path("b"), path("c")));
  EXPECT_EQ(text("b/x"), "a");
  EXPECT_EQ(text("c/x"), "b");
  EXPECT_EQ(storage().rename(path("missing"), path("d")).error().code, Code::not_found);
}

TEST_P(StorageContract, RemovesAFolderWithAllThatIsInIt) {
  ASSERT_TRUE(storage().make_folder(path("a/b/c")));
  write("a/b/c/x", "1");
  ASSERT_TRUE(storage().remove_folder(path("a")));
  EXPECT_EQ(storage().list(root_).value(), std::vector<std::string>{});
  EXPECT_TRUE(storage().remove_folder(path("a"))) << "one that is not there is no error";
  ASSERT_TRUE(storage().sync_folder(root_));
}

INSTANTIATE_TEST_SUITE_P(Implementations, StorageContract, ::testing::Bool(),
                         [](const auto& duplicate) { return duplicate.param ? "Real" : "Memory"; });

TEST(RealStorage, FollowsNoLinkOutOfAFolderThatItRemoves) {
  std::string root = (std::filesystem::temp_directory_path() / "muster-storage-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  std::filesystem::create_directories(root + "/outside");
  std::ofstream(root + "/outside/file") << "mine";
  std::filesystem::create_directories(root + "/inside");
  std::filesystem::create_directory_symlink(root + "/outside", root + "/inside/link");
  ASSERT_TRUE(real_storage().remove_folder(root + "/inside"));
  EXPECT_TRUE(std::filesystem::exists(root + "/outside/file"));
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(real_storage().open(root + "/pipe")) << "and waits for nobody at a pipe";
  std::filesystem::remove_all(root);
}

// As the workers of two hosts do with what a job has left in a folder that they share.
TEST(RealStorage, RemovesAFolderThatAnotherOneRemovesToo) {
  std::string root = (std::filesystem::temp_directory_path() / "muster-storage-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) std::filesystem::create_directories(fmt::format("{}/a/{}/b", root, i));
    std::array<std::string, 2> troubles;
    const auto remove = [&](std::string& trouble) {
      if (const auto done = real_storage().remove_folder(root + "/a"); !done) trouble = done.error().message;
    };
    std::thread other(remove, std::ref(troubles[0]));
    remove(troubles[1]);
    other.join();
    ASSERT_EQ(troubles, (std::array<std::string, 2>{}));
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace muster::checkpoint
