// Private to train: requests of a person at the page of a job to its trainings: to save, and to stop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/train/callback.h"
#include "muster/train/model_checkpoint.h"

namespace muster::train {

// How often each was asked for since the job began: "save 2 stop 1". The launcher's page writes it, rank 0
// reads it.
struct PageRequestCounts {
  std::int64_t save = 0;
  std::int64_t stop = 0;
  friend bool operator==(const PageRequestCounts&, const PageRequestCounts&) = default;
};
// Of a file that is not there, or is another one: none.
PageRequestCounts read_page_requests(const std::string& path);

// All workers look about twice a second, after the same steps: how many those are they settle each time, by
// one small call together. What one of them is asked for, all do behind the same step.
class PageRequests final : public Callback {
 public:
  PageRequests(std::string path, std::string saved_folder, const Clock& clock = real_clock())
      : path_(std::move(path)), saved_folder_(std::move(saved_folder)), clock_(clock) {}

  bool gathers() const override { return true; }
  Result<> on_train_begin(CallbackContext& context) override;
  Result<> on_train_step_end(CallbackContext& context) override;
  Result<State> state() override;
  Result<> load_state(const State& state) override;
  bool shares_state() const override { return true; }

 private:
  // What all say together: the most of each.
  struct Look {
    std::int64_t save = 0;
    std::int64_t stop = 0;
    std::int64_t saved = 0;
    std::int64_t stopped = 0;
    std::int64_t step_us = 0;
  };
  Look own_look(std::int64_t step) const;
  Result<Look> look_together(Look mine) const;
  Result<> save(CallbackContext& context);

  std::string path_;
  std::string saved_folder_;
  const Clock& clock_;
  PageRequestCounts done_ = {};
  std::int64_t next_look_ = 1;  // behind this step
  std::int64_t looked_step_ = 0;
  TimePoint looked_at_ = {};
  std::vector<std::shared_ptr<ModelCheckpoint>> savers_ = {};  // they may still be writing
};

// The callback that MUSTER_PAGE_REQUESTS asks for; null: none.
CallbackPtr page_requests_callback();

}  // namespace muster::train
