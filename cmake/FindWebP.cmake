# Finds libwebp, which Debian ships without a CMake config: WebP_FOUND,
# WebP::WebP, which decodes still pictures and animations.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_plain_library(WebP HEADER webp/demux.h LIBRARIES webpdemux webp)
