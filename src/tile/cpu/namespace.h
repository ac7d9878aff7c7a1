// The CPU target's headers are compiled twice: as the target itself, and, with accesses observed,
// as the trace target. Each gets its own inline namespace, so that one program may link both.
#pragma once

#if defined(CRIA_TARGET_TRACE)
#define CRIA_HOST_TARGET tracing
#else
#define CRIA_HOST_TARGET cpu
#endif
