// What the compiled part of muster.torch calls in Muster: a table of plain functions.
//
// The compiled part is made where PyTorch is, by the compiler that is there, and Muster's library is not:
// nothing but C may pass between them. Both are made from this one file: the part is compiled again for each
// version of Muster.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::torch {

enum class Kind : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, barrier };

// count: elements of the result where they are added, else bytes of a rank's part. Names are Muster's.
struct Call {
  Kind kind = Kind::barrier;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  const char* dtype = nullptr;
  const char* reduction = nullptr;
  std::uint32_t root = 0;
};

struct Failure;  // of a call; owned by who gets it, until raise()

// Without the interpreter lock, but for raise().
struct Calls {
  // Makes the call on this thread; null when it has ended well.
  Failure* (*run)(void* group, const Call* call, double timeout_seconds);
  // Begins the call: done(context, failure or null) is called at its end, once, on any thread.
  void (*start)(void* group, const Call* call, double timeout_seconds, void (*done)(void*, Failure*),
                void* context);
  // Sets Python's exception, and frees the failure.
  void (*raise)(Failure* failure);
};

}  // namespace muster::torch
