// Files of MNIST and CIFAR: what is accepted can be read to its end.
#include "fuzz.h"
#include "muster/data/data.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t what = input.byte() % 3;
  MemoryFiles files;
  const auto put = [&](const char* name, std::span<const std::byte> bytes) {
    fuzz::expect(files.write(std::string("folder/") + name, bytes).has_value());
  };
  if (what == 0) {
    const std::size_t label_size = input.byte();
    put("train-labels-idx1-ubyte", input.take(label_size));
    put("train-images-idx3-ubyte", input.rest());
  } else {
    put(what == 1 ? "data_batch_1.bin" : "train.bin", input.rest());
  }
  const data::SourceOptions options{.folder = "folder", .usage = "train"};
  auto dataset = what == 0   ? data::mnist(options, files)
                 : what == 1 ? data::cifar10(options, files)
                             : data::cifar100(options, files);
  static_cast<void>(dataset.size());
  return 0;
}
