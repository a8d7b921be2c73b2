/* Which report, with which options, and whether all of it was written; see report.h. */
#include "engine/report.h"

#include <errno.h>
#include <string.h>

#include "engine/error.h"

int csw_utf8_next(const char *s, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *c = (const unsigned char *)s;
	int bytes = c[0] < 0x80 ? 1 : c[0] >> 5 == 6 ? 2 : c[0] >> 4 == 14 ? 3 : 4;
	uint32_t p;

	if (!c[0])
		return 0;
	if (bytes == 4 && c[0] >> 3 != 30)
		return -1;
	p = bytes == 1 ? c[0] : c[0] & (0x7fu >> bytes);
	for (int i = 1; i < bytes; i++) {
		if (c[i] >> 6 != 2) /* the terminating NUL ends here too */
			return -1;
		p = p << 6 | (c[i] & 0x3fu);
	}
	/* Overlong forms, UTF-16 surrogates and what lies beyond Unicode are not UTF-8. */
	if (p < least[bytes] || p > 0x10ffff || (p >= 0xd800 && p <= 0xdfff))
		return -1;
	*point = p;
	return bytes;
}

/* The caller's struct may be older (shorter: the rest is 0) or newer (longer: the rest must be 0).
 */
static int read_opts(struct csw_report_opts *to, const struct csw_report_opts *from,
		     struct csw_error *err)
{
	const unsigned char *bytes = (const unsigned char *)from;

	*to = (struct csw_report_opts){ .size = sizeof(*to) };
	if (!from)
		return 0;
	if (from->size < sizeof(from->size))
		return csw_error_set(
			err, -EINVAL,
			"csw_report_opts.size is %zu; set it to sizeof(struct csw_report_opts)",
			from->size);
	for (size_t i = sizeof(*to); i < from->size; i++) {
		if (bytes[i])
			return csw_error_set(err, -E2BIG,
					     "csw_report_opts asks for something that libcsw %s "
					     "does not have; use a newer library",
					     csw_version());
	}
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

int csw_report(const struct csw_table *t, FILE *file, const struct csw_report_opts *opts,
	       struct csw_error *err)
{
	struct csw_report_opts o;
	int ret = read_opts(&o, opts, err);

	if (ret < 0)
		return ret;
	/* stdio may touch errno on success; it counts only together with the stream's error flag.
	 */
	errno = 0;
	if (o.format == CSW_FORMAT_TABLE)
		ret = csw_report_text(t, file, o.verbose != 0, err);
	else if (o.format == CSW_FORMAT_JSON)
		ret = csw_report_json(t, file, err);
	else
		return csw_error_set(err, -EINVAL, "no such report format: %u", o.format);
	if (ret == 0 && ferror(file)) {
		ret = errno ? -errno : -EIO;
		return csw_error_set(err, ret, "cannot write the report: %s", strerror(-ret));
	}
	return ret;
}
