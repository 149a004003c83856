// Updates of variables in training.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_training_rules(RuleTable& table) {
  no_gradient(
      table,
      "ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA "
      "ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp "
      "ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum "
      "ApplyPowerSign ApplyProximalAdagrad ApplyProximalGradientDescent "
      "ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta "
      "ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 "
      "ResourceApplyAdam ResourceApplyAdamWithAmsgrad "
      "ResourceApplyAddSign ResourceApplyCenteredRMSProp "
      "ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
      "ResourceApplyKerasMomentum ResourceApplyMomentum "
      "ResourceApplyPowerSign ResourceApplyProximalAdagrad "
      "ResourceApplyProximalGradientDescent ResourceApplyRMSProp "
      "ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad "
      "ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2 "
      "ResourceSparseApplyAdam ResourceSparseApplyCenteredRMSProp "
      "ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 "
      "ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum "
      "ResourceSparseApplyProximalAdagrad "
      "ResourceSparseApplyProximalGradientDescent "
      "ResourceSparseApplyRMSProp SparseApplyAdadelta SparseApplyAdagrad "
      "SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyAdam "
      "SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
      "SparseApplyMomentum SparseApplyProximalAdagrad "
      "SparseApplyProximalGradientDescent SparseApplyRMSProp",
      "it changes a variable");
}

}  // namespace tagflow::autodiff
