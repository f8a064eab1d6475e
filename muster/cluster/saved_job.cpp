#include "muster/cluster/saved_job.h"

#include <algorithm>

#include "muster/cluster/messages.h"

namespace muster::cluster {

void SavedJob::apply(const Record& record) {
  std::visit(Overloaded{[&](const record::Job& begun) { *this = {.job = begun}; },
                        [&](const record::Formed& formed) {
                          roster = formed.roster;
                          keys = formed.keys;
                          left.clear();
                          failure.reset();
                          finished_calls = std::max(finished_calls, roster->finished_calls);
                        },
                        [&](const record::Left& who) {
                          if (std::find(left.begin(), left.end(), who) == left.end()) left.push_back(who);
                        },
                        [&](const record::Finished& finished) { finished_calls = finished.calls; },
                        [&](const record::Ended& ended) {
                          failure = ended.failure;
                          ended_well = !failure;
                        },
                        [&](const record::Kept&) { has_points = true; },
                        [&](const record::Adopted& adopted) { epoch_min = adopted.epoch_min; },
                        [&](const record::At& at) { scheduler = at.scheduler; }},
             record);
}

std::vector<Record> SavedJob::records() const {
  std::vector<Record> records{job};
  if (!scheduler.empty()) records.push_back(record::At{scheduler});
  if (epoch_min > 0) records.push_back(record::Adopted{epoch_min});
  if (has_points) records.push_back(record::Kept{});
  if (roster) records.push_back(record::Formed{roster, keys});
  records.insert(records.end(), left.begin(), left.end());
  if (finished_calls > 0) records.push_back(record::Finished{finished_calls});
  if (failure || ended_well) records.push_back(record::Ended{failure});
  return records;
}

}  // namespace muster::cluster
