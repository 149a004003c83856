// --expect of `tagflow run`: results that are known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/tagflow/model/results.h"
#include "graph/node.h"
#include "graph/status.h"

namespace tagflow::apps {

// What a run should give. It is read before the run, so that a long run does
// not end by a file that is missing.
class ExpectedResults {
 public:
  // The values of these fetches, in their order: a folder, or a file that ends
  // in .npz, has them by the names that --out writes; a single .npy, or a .json
  // of strings, is the only one. Errors of reading; InvalidArgument for all
  // whose type or shape no value of the fetch has, in one message. REQUIRES:
  // one name per endpoint.
  static Result<ExpectedResults> read(const std::string& path,
                                      std::span<const FetchName> names,
                                      std::span<const graph::Endpoint> fetches);

  // Compares by the rules of compare() in conform/compare.h. InvalidArgument
  // for all that differ, in one message.
  Status check(std::span<const FetchName> names,
               std::span<const Tensor> results) const;

 private:
  std::vector<Tensor> values_;
};

}  // namespace tagflow::apps
