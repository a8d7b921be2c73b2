/* Options from older and newer programs. Invariant: what is not understood is refused, never
 * ignored. See opts.h. */
#include "engine/opts.h"

#include <errno.h>
#include <string.h>

#include "engine/error.h"

int csw_opts_take(void *to, size_t known, const void *from, const char *name, struct csw_error *err)
{
	const unsigned char *bytes = from;
	size_t size;

	memset(to, 0, known);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size))
		return csw_error_set(err, -EINVAL, "%s.size is %zu; set it to sizeof(struct %s)",
				     name, size, name);
	for (size_t i = known; i < size; i++) {
		if (bytes[i])
			return csw_error_set(err, -E2BIG,
					     "%s asks for something that libcsw %s does not have; "
					     "use a newer library",
					     name, CSW_VERSION);
	}
	memcpy(to, from, size < known ? size : known);
	return 0;
}
