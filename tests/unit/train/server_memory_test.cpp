#include "muster/train/server_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster::train {
namespace {
namespace server_memory_test {

constexpr std::uint64_t mib = 1 << 20;

class Memory : public ::testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(files.write(path, std::as_bytes(std::span(text))));
  }
  MemoryFiles files;
};

TEST_F(Memory, IsAShareOfWhatTheHostHas) {
  EXPECT_EQ(memory_left_bytes(1, files), 0U);
  write("/proc/meminfo", "MemTotal:    900000 kB\nMemAvailable:   409600 kB\n");
  EXPECT_EQ(memory_left_bytes(1, files), 400 * mib);
  EXPECT_EQ(memory_left_bytes(4, files), 100 * mib);
}

TEST_F(Memory, IsBoundedByAGroupAndByTheOneThatItIsIn) {
  write("/proc/meminfo", "MemAvailable:   409600 kB\n");
  write("/proc/self/cgroup", "4:memory:/\n0::/job/server\n");
  write("/sys/fs/cgroup/job/server/memory.max", "max\n");
  write("/sys/fs/cgroup/job/server/memory.current", "1048576\n");
  write("/sys/fs/cgroup/job/memory.max", "104857600\n");
  write("/sys/fs/cgroup/job/memory.current", "20971520\n");
  write("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 10485760\n");
  EXPECT_EQ(memory_left_bytes(1, files), 90 * mib);
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "52428800\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "62914560\n");
  write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 31457280\n");
  EXPECT_EQ(memory_left_bytes(2, files), 10 * mib);
}

}  // namespace server_memory_test
}  // namespace
}  // namespace muster::train
