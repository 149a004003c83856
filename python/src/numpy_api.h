// NumPy's C interface, whose table module.cpp loads for all sources.
#pragma once

#include "python/src/stable.h"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tagflow_numpy_api
#ifndef TAGFLOW_LOADS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
