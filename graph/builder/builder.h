// The builder API: everything to write a graph in C++.
#pragma once

#include "graph/builder/control_flow.h"
#include "graph/builder/function.h"
#include "graph/builder/map_fn.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_control.h"
#include "graph/builder/ops_math.h"
#include "graph/builder/ops_nn.h"
#include "graph/builder/ops_reduction.h"
#include "graph/builder/ops_state.h"
#include "graph/builder/scope.h"
#include "graph/builder/structured_control_flow.h"
#include "graph/builder/tensor_array.h"
