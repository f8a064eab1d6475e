// A group of two whose other member always holds the same, for tests of what reduces: no process, no thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "muster/base/base.h"

namespace muster {

// Notes the calls. They may be held up or fail.
class MirrorGroup final : public Communicator {
 public:
  struct Call {
    std::size_t count;
    DType dtype;
    const void* in;
    const void* out;
    std::thread::id thread;
    std::vector<std::byte> values;  // what travelled

    std::vector<float> floats() const {
      std::vector<float> made(count);
      std::memcpy(made.data(), values.data(), values.size());
      return made;
    }
  };
  struct Memory {
    std::shared_ptr<std::byte> data;
    std::size_t size_bytes;
  };
  std::vector<Call> calls;
  std::function<void(const Call&)> during = [](const Call&) {};
  std::size_t failing = SIZE_MAX;  // the call that fails
  bool shares = false;
  std::vector<Memory> shared;

  std::vector<std::size_t> counts() const {
    std::vector<std::size_t> made;
    for (const Call& call : calls) made.push_back(call.count);
    return made;
  }

  std::uint32_t rank() const override { return 0; }
  std::uint32_t size() const override { return 2; }
  Result<> all_reduce(const void* in, void* out, std::size_t count, DType dtype,
                      Reduction reduction) override {
    const auto* bytes = static_cast<const std::byte*>(in);
    calls.push_back({count, dtype, in, out, std::this_thread::get_id(),
                     std::vector<std::byte>(bytes, bytes + count * size_bytes(dtype))});
    const Call call = calls.back();
    during(call);
    if (calls.size() - 1 == failing) return fail(Code::peer_lost, "rank 1 is gone");
    EXPECT_EQ(std::memcmp(call.values.data(), in, call.values.size()), 0) << "changed while it was reduced";
    const int both = reduction == Reduction::sum ? 2 : 1;
    if (dtype == DType::float32)
      multiply<float>(call, out, both);
    else
      multiply<double>(call, out, both);
    return {};
  }
  bool shares_memory() const override { return shares; }
  Result<std::shared_ptr<std::byte>> shared_buffer(std::size_t size_bytes) override {
    constexpr std::align_val_t alignment{64};
    shared.push_back({{static_cast<std::byte*>(::operator new(size_bytes, alignment)),
                       [](std::byte* data) { ::operator delete(data, alignment); }},
                      size_bytes});
    return shared.back().data;
  }

 private:
  template <class T>
  static void multiply(const Call& call, void* out, int factor) {
    for (std::size_t i = 0; i < call.count; ++i) {
      T value;
      std::memcpy(&value, &call.values[i * sizeof(T)], sizeof(T));
      static_cast<T*>(out)[i] = value * static_cast<T>(factor);
    }
  }
};

}  // namespace muster
