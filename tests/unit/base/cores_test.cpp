#include "muster/base/cores.h"

#include <gtest/gtest.h>

#include <string_view>

#include "muster/base/control_groups.h"

namespace muster {
namespace {
namespace cores_test {

class Cores : public ::testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(files.write(path, std::as_bytes(std::span(text))));
  }
  MemoryFiles files;
};

TEST_F(Cores, AreNotBoundWhereNoGroupSaysSo) {
  EXPECT_EQ(cores_of_control_groups(files), std::nullopt);
  write("/proc/self/cgroup", "0::/\n1:cpu:/\n");
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores_of_control_groups(files), std::nullopt);
}

TEST_F(Cores, AreThoseOfTheLeastGroupThatThisOneIsIn) {
  write("/proc/self/cgroup", "0::/pods/pod/container\n");
  write("/sys/fs/cgroup/pods/pod/container/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pods/pod/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/pods/cpu.max", "800000 100000\n");
  EXPECT_EQ(cores_of_control_groups(files), 1.5);
}

TEST_F(Cores, AreBoundByTheFirstVersionOfGroupsToo) {
  write("/proc/self/cgroup", "5:memory:/other\n4:cpu,cpuacct:/job\n0::/\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "25000\n");
  EXPECT_EQ(cores_of_control_groups(files), 2.0);
}

TEST_F(Cores, OfAContainerThatSeesItsGroupAsTheRootAreBound) {
  write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/0123\n0::/docker/0123\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores_of_control_groups(files), 3.0);
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cores_of_control_groups(files), 2.0);
}

TEST_F(Cores, WhatIsNoNumberIsNoBound) {
  write("/proc/self/cgroup", "\nnonsense\n0:\n0::/\n");
  write("/sys/fs/cgroup/cpu.max", "100000\n");
  EXPECT_EQ(cores_of_control_groups(files), std::nullopt);
  write("/sys/fs/cgroup/cpu.max", "");
  EXPECT_EQ(cores_of_control_groups(files), std::nullopt);
}

TEST_F(Cores, OfThisProcessAreAtLeastOneAndNoMoreThanTheHosts) {
  EXPECT_GE(allowed_cores(), 1);
  EXPECT_LE(allowed_cores(), host_cores());
  EXPECT_NE(allowed_cores_key(), 0U);
  EXPECT_EQ(allowed_cores_key(), allowed_cores_key());
}

}  // namespace cores_test
}  // namespace
}  // namespace muster
