// The element types of 16 bits as complete types, for code that computes with
// them: Half and BFloat16 of graph/dtype.h.
#pragma once

#include <Eigen/Core>

#include "graph/dtype.h"
