#include "muster/nn/lars.h"

#include <string>
#include <utility>

#include "muster/nn/arguments.h"

namespace muster::nn {

LARS::LARS(std::shared_ptr<Optimizer> optimizer, LARSOptions options)
    : Optimizer("LARS", optimizer->updated_parameters(), {}),
      optimizer_(std::move(optimizer)),
      options_(std::move(options)) {
  require_positive("LARS", "epsilon", options_.epsilon).value();
  require_positive("LARS", "coefficient", options_.coefficient).value();
  rules_ = optimizer_->rules_;
  rates_ = optimizer_->rates_;
  global_step_ = optimizer_->global_step_;
  remove("learning_rate");
  remove("global_step");
  insert_child("optimizer", optimizer_);
  for (std::size_t i = 0; i < updated_.size(); ++i) {
    const std::string& name = updated_[i]->name();
    scales_.push_back(options_.lars_filter ? options_.lars_filter(*updated_[i])
                                           : name.find("LayerNorm") == std::string::npos &&
                                                 name.find("bias") == std::string::npos);
    if (rules_[i].decay.cell())
      throw Exception(Code::not_provided, "LARS: a weight decay that changes with the step is not provided");
  }
  options_.lars_filter = {};  // it may hold what must not live as long as this
}

Values LARS::construct(std::span<const Value> gradients) {
  require_gradients(gradients);
  graph::watch(*optimizer_);
  Values scaled = optimizer_->unscaled(gradients);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (!scales_[i]) continue;
    scaled[i] = graph::apply("lars", {updated_[i], scaled[i], rate_of(i)},
                             {{"coefficient", options_.coefficient},
                              {"eps", options_.epsilon},
                              {"use_clip", options_.use_clip},
                              {"weight_decay", rules_[i].decay.decay()}});
  }
  return optimizer_->apply_prepared(scaled);
}

}  // namespace muster::nn
