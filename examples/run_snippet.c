/* Run a snippet of untrusted Python and say how it went. As root, after `make install`:
 *
 *	cc run_snippet.c -lglovebox -o run_snippet && ./run_snippet
 *
 * or, from the top of the tree that `make build` has built, where GLOVEBOX_PROGRAM names the program that the
 * library starts:
 *
 *	cc examples/run_snippet.c -Iinclude -Lbuild/src/caller -lglovebox -Wl,-rpath,$PWD/build/src/caller -o run_snippet
 *	GLOVEBOX_PROGRAM=$PWD/build/glovebox ./run_snippet
 */
#include <glovebox.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	static const char code[] = "import sys\nprint(sum(range(10)), file=sys.stdout)\n";
	struct gbx_request request = { .size = sizeof(request), .timeout_us = 2000000 };
	struct gbx_result result = { .size = sizeof(result) };
	struct gbx_session *session = NULL;
	struct gbx_error error;

	request.code = code;
	request.code_len = strlen(code);

	if (gbx_open(NULL, &session, &error) < 0 ||
		gbx_run(session, &request, &result, &error) < 0) {
		fprintf(stderr, "run_snippet: %s\n", error.text);
		gbx_close(session);
		return 125;
	}
	printf("%s, exit code %d, %.1f ms, %.1f MB\n", gbx_status_word(result.status),
		result.exit_code, (double)result.wall_us / 1e3,
		(double)result.memory_peak_bytes / 1048576);
	fwrite(result.out.bytes, 1, result.out.len, stdout);
	if (result.hint) /* what stood in its way, and what to do */
		printf("%s\n", result.hint);
	gbx_result_clear(&result);
	gbx_close(session);
	return 0;
}
