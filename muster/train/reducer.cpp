#include "muster/train/reducer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/agreement.h"
#include "muster/train/context.h"
#include "muster/train/pipeline_layout.h"
#include "muster/train/recovering_call.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

constexpr std::size_t round_up(std::size_t size_bytes) {
  return (size_bytes + Buffer::alignment_bytes - 1) / Buffer::alignment_bytes * Buffer::alignment_bytes;
}

// Gradients of one dtype that are reduced by one collective call: where each lies from the bucket's begin on.
struct Bucket {
  std::byte* data = nullptr;
  std::size_t size_bytes = 0;
  std::vector<std::size_t> offsets_bytes = {};
};

// A Plan leaves its gradients side by side in one buffer, with less than an alignment between them: then the
// bucket is that memory itself. The gaps are reduced along and never read.
std::optional<Bucket> bucket_in_place(std::span<const Tensor> gradients) {
  Bucket bucket{.data = gradients.front().bytes()};
  std::size_t end = gradients.front().offset_bytes();
  const std::size_t begin = end;
  for (const Tensor& gradient : gradients) {
    const std::size_t offset = gradient.offset_bytes();
    if (gradient.buffer() != gradients.front().buffer() || offset < end || offset > round_up(end))
      return std::nullopt;
    bucket.offsets_bytes.push_back(offset - begin);
    end = offset + gradient.size_bytes();
  }
  bucket.size_bytes = end - begin;
  return bucket;
}

Bucket bucket_packed(std::span<const Tensor> gradients,
                     const std::function<std::shared_ptr<Buffer>(std::size_t)>& make,
                     std::shared_ptr<Buffer>& memory) {
  Bucket bucket;
  for (const Tensor& gradient : gradients) {
    bucket.offsets_bytes.push_back(bucket.size_bytes);
    bucket.size_bytes += gradient.size_bytes();
  }
  if (!memory || memory->size_bytes() < bucket.size_bytes) memory = make(bucket.size_bytes);
  bucket.data = memory->data();
  for (std::size_t i = 0; i < gradients.size(); ++i)
    std::memcpy(bucket.data + bucket.offsets_bytes[i], gradients[i].bytes(), gradients[i].size_bytes());
  return bucket;
}

}  // namespace

DistributedReducer::DistributedReducer(std::vector<std::shared_ptr<graph::Parameter>> parameters,
                                       std::optional<bool> mean)
    : parameters_(std::move(parameters)), mean_(mean) {}

Result<> DistributedReducer::check_gradients(std::span<const Tensor> gradients) const {
  if (gradients.size() != parameters_.size())
    return fail(Code::invalid_argument,
                fmt::format("the reducer was made for {} parameters but got {} gradients", parameters_.size(),
                            gradients.size()));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const graph::Parameter& parameter = *parameters_[i];
    if (gradients[i].dtype() == parameter.dtype() && gradients[i].shape() == parameter.shape()) continue;
    return fail(Code::invalid_argument,
                fmt::format("gradient {} is {} {} but its parameter '{}' is {} {}", i,
                            to_string(gradients[i].dtype()), to_string(gradients[i].shape()),
                            parameter.name(), to_string(parameter.dtype()), to_string(parameter.shape())));
  }
  return {};
}

Result<> DistributedReducer::check_equal_parameters(collective::Communicator& group) {
  std::vector<NamedTensor> values;
  for (const auto& parameter : parameters_)
    if (parameter->absence() == nullptr)
      values.push_back({parameter->name(), parameter->materialize(seed())});
  return check_agreement(values, group);
}

// Memory that the workers of an earlier epoch shared is shared with nobody now.
void DistributedReducer::forget_other_epochs(const Session& session) {
  if (std::exchange(epoch_, session.epoch()) == session.epoch()) return;
  packed_.reset();
  outputs_ = {};
  checked_ = false;
}

std::shared_ptr<Buffer> DistributedReducer::output_buffer(const Memory& memory, std::size_t size_bytes) {
  std::shared_ptr<Buffer>* free = &outputs_[0];
  for (auto& output : outputs_)
    if (!output || output.use_count() == 1) free = &output;
  if (!*free || free->use_count() > 1 || (*free)->size_bytes() < size_bytes) *free = memory(size_bytes);
  return *free;
}

Result<> DistributedReducer::reduce_some(std::span<const Tensor> gradients, std::span<Tensor> reduced,
                                         collective::Communicator& group, const Memory& memory) {
  const auto reduction =
      mean_.value_or(context().gradients_mean) ? collective::Reduction::mean : collective::Reduction::sum;
  for (std::size_t begin = 0; begin < gradients.size();) {
    std::size_t end = begin + 1;
    while (end < gradients.size() && gradients[end].dtype() == gradients[begin].dtype()) ++end;
    const auto same_dtype = gradients.subspan(begin, end - begin);
    const DType dtype = same_dtype.front().dtype();
    auto in_place = bucket_in_place(same_dtype);
    const Bucket bucket = in_place ? *std::move(in_place) : bucket_packed(same_dtype, memory, packed_);
    const auto output = output_buffer(memory, bucket.size_bytes);
    MUSTER_TRY_VOID(group.all_reduce(bucket.data, output->data(), bucket.size_bytes / size_bytes(dtype),
                                     dtype, reduction));
    for (std::size_t i = 0; i < same_dtype.size(); ++i) {
      reduced[begin + i] = Tensor(dtype, same_dtype[i].shape(), output, bucket.offsets_bytes[i]);
      if (same_dtype[i].home()) reduced[begin + i].set_home(*same_dtype[i].home());
    }
    begin = end;
  }
  return {};
}

Result<std::vector<Tensor>> DistributedReducer::reduce(std::span<const Tensor> gradients) {
  MUSTER_TRY_VOID(check_gradients(gradients));
  std::vector<Tensor> reduced(gradients.begin(), gradients.end());
  Session* session = Session::current();
  if (session == nullptr) return reduced;
  MUSTER_TRY(const PipelineLayout now, pipeline_layout());
  const bool alone = session->world_size() == 1 || (now.divides() && now.replicas == 1);
  if (alone || gradients.empty()) {
    session->report_step(++steps_);
    return reduced;
  }
  if (step_is_aborted()) return reduced;
  std::vector<Tensor> here;
  for (const Tensor& gradient : gradients)
    if (gradient.absence() == nullptr) here.push_back(gradient);
  std::vector<Tensor> done(here.size());
  const auto stages = now.divides() ? std::optional(now.stages) : std::nullopt;
  const Memory memory = [&](std::size_t size_bytes) { return session->shared_buffer(size_bytes, stages); };
  const Session::GroupCall work = [&](collective::Communicator& group) -> Result<> {
    forget_other_epochs(*session);  // it may be made again in the next one
    if (!std::exchange(checked_, true)) {
      const cluster::Traits traits = {{"seed", fmt::format("{}", seed())}};
      if (!now.divides()) MUSTER_TRY_VOID(compare_traits(traits, session->is_strict(), group));
      MUSTER_TRY_VOID(check_equal_parameters(group));
      if (RecoveringCall* const call = RecoveringCall::current(); call != nullptr && !now.divides())
        call->note_equal_parameters();
    }
    return reduce_some(here, done, group, memory);
  };
  MUSTER_TRY_VOID(
      call_in_body([&] { return session->explicit_collective("the reduction of gradients", stages, work); }));
  if (step_is_aborted()) return reduced;
  auto next = done.begin();
  for (Tensor& gradient : reduced)
    if (gradient.absence() == nullptr) gradient = *next++;
  session->report_step(++steps_);
  return reduced;
}

}  // namespace muster::train
