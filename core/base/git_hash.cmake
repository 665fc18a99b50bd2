# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0

# Run at every build: writes the commit into OUTPUT, but only when it has changed.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
                WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE hash ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed OR NOT hash)
  set(hash unknown)
endif()
set(text "#define CAROUSEL_GIT_HASH \"${hash}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
