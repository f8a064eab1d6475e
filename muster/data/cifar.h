// Small photographs in ten or a hundred classes, from the binary version of the files
// (docs/formats/cifar.md).
#pragma once

#include "muster/data/dataset.h"
#include "muster/data/source_options.h"

namespace muster::data {

// Columns "image" (32, 32, 3) uint8 and "label" () uint32. usage "train" reads data_batch_*.bin, "test"
// test_batch.bin, "all" or nothing both, in the order of their names. Reads and checks the files now: each
// holds any whole number of records; a file that is missing, cut off or holds a label above 9 is an error
// that names the file and the byte offset.
Dataset cifar10(const SourceOptions& options, const Files& files = real_files());

// Columns "image" (32, 32, 3) uint8, "coarse_label" () uint32 (0 to 19) and "fine_label" () uint32 (0 to 99).
// "train" reads train.bin, "test" test.bin. A PK sampler goes by the fine label.
Dataset cifar100(const SourceOptions& options, const Files& files = real_files());

}  // namespace muster::data
