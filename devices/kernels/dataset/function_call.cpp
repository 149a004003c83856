#include "devices/kernels/dataset/function_call.h"

#include <algorithm>
#include <span>

#include "graph/fault.h"

namespace tagflow::devices {

Result<StageFunction> StageFunction::make(Segment& segment,
                                          const CapturedFunction& function,
                                          size_t num_args) {
  const std::string& name = function.function.name;
  Pipeline& pipeline = segment.pipeline();
  if (pipeline.host() == nullptr)
    return error(Code::kUnimplemented,
                 "function \"{}\" cannot be called here: datasets call "
                 "functions only in a session",
                 name);
  StageFunction made;
  TAGFLOW_ASSIGN(made.hosted_,
                 pipeline.host()->find(function.function, function.library));
  const size_t wanted = made.hosted_->arg_types().size();
  if (wanted != num_args + function.captured.size())
    return invalid_argument(
        "function \"{}\" has {} arguments, but gets {}, and {} that are "
        "captured",
        name, wanted, num_args, function.captured.size());
  made.function_ = &function;
  made.group_ = pipeline.calls();
  made.segment_ = segment.weak_from_this();
  return made;
}

Status StageFunction::check_gives(size_t first,
                                  const std::vector<DataType>& types) const {
  const std::vector<DataType>& results = hosted_->result_types();
  if (results.size() >= first &&
      std::ranges::equal(std::span(results).subspan(first), types))
    return {};
  return invalid_argument(
      "the results of function \"{}\" are not of the types of the elements",
      function_->function.name);
}

CallPtr StageFunction::operator()(Element args) const {
  auto call = std::make_shared<OpenCall>();
  args.insert(args.end(), function_->captured.begin(),
              function_->captured.end());
  // The name is copied: the answer may come when the stage is gone.
  hosted_->call(
      std::move(args), *group_,
      [call, segment = segment_,
       name = function_->function.name](Result<Element> answer) {
        // Without memory for the prefix, the error has none.
        Status failed = answer.status();
        if (!failed.ok() && guarded("dataset", [&] {
                              failed = Status(failed).with_prefix(
                                  fmt::format("in function \"{}\": ", name));
                              return Status();
                            }).ok())
          answer = std::move(failed);
        call->finish(std::move(answer), segment);
      });
  return call;
}

Progress CallEach::next(Pull& pull, bool* was_called, Element* argument) {
  if (call_ == nullptr) {
    const Progress progress = input_->next(pull);
    if (progress != Progress::kElement) return progress;
    if (argument != nullptr) argument_ = pull.element;
    call_ = function_(std::move(pull.element));
  }
  if (!call_->is_done()) return Progress::kWait;
  const CallPtr call = std::exchange(call_, nullptr);
  if (argument != nullptr) *argument = std::exchange(argument_, {});
  *was_called = true;
  Result<Element> answer = call->take();
  if (!answer.ok()) return pull.fail(std::move(answer).status());
  return pull.give(*std::move(answer));
}

Progress ParallelCalls::next(Pull& pull, bool* was_called, Element* argument) {
  while (!is_over_ && open_.size() < most_) {
    if (!segment_.take_turn()) break;
    const Progress progress = input_->next(pull);
    if (progress == Progress::kWait) break;
    if (progress == Progress::kEnd) {
      is_over_ = true;
    } else if (progress == Progress::kFailed) {
      open_.push_back({nullptr, std::move(pull.error), {}});
    } else {
      Element kept;
      if (argument != nullptr) kept = pull.element;
      open_.push_back({call_(std::move(pull.element)), {}, std::move(kept)});
    }
  }
  if (open_.empty()) return is_over_ ? Progress::kEnd : Progress::kWait;
  Open& first = open_.front();
  if (first.call != nullptr && !first.call->is_done()) return Progress::kWait;
  Open done = std::move(first);
  open_.pop_front();
  if (done.call == nullptr) return pull.fail(std::move(done.error));
  if (argument != nullptr) *argument = std::move(done.argument);
  *was_called = true;
  Result<Element> answer = done.call->take();
  if (!answer.ok()) return pull.fail(std::move(answer).status());
  return pull.give(*std::move(answer));
}

Result<DatasetRef> dataset_result(const Element& results,
                                  const ElementSpec& spec) {
  if (results.size() != 1)
    return invalid_argument("the function must return one dataset");
  TAGFLOW_ASSIGN(DatasetRef dataset,
                 dataset_of(results[0], "the result of the function"));
  if (dataset->spec().types != spec.types)
    return spec.check(dataset->spec(), dataset->describe());
  return dataset;
}

Result<bool> predicate_of(const Element& result) {
  if (result.size() != 1 || result[0].dtype() != DataType::kBool ||
      result[0].num_elements() != 1)
    return invalid_argument("the predicate must return one bool, not {}",
                            result.empty() ? "nothing" : result[0].describe());
  return *result[0].data<bool>();
}

}  // namespace tagflow::devices
