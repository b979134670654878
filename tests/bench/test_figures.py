"""The figures of the benchmark against values worked out by hand."""
import base64
import unittest

import figures
import programs
import report


class Figures(unittest.TestCase):
    def test_a_percentile_is_a_measured_value_of_the_nearest_rank(self):
        hundred = list(range(100, 0, -1))
        self.assertEqual([figures.percentile(hundred, p) for p in (50, 95, 99, 100)], [50, 95, 99, 100])
        self.assertEqual(figures.percentile([15, 20, 35, 40, 50], 40), 20)
        self.assertEqual(figures.percentile([7], 99), 7)
        self.assertEqual(figures.percentile([1, 2], 50), 1)
        self.assertEqual(figures.percentile([1, 2], 51), 2)
        self.assertIsNone(figures.percentile([], 50))

    def test_p99_of_few_values_is_the_largest(self):
        self.assertEqual(figures.percentile([3, 1, 2], 99), 3)

    def test_a_rate_weighs_rounds_by_their_time(self):
        self.assertEqual(figures.rate([(10, 1_000_000_000), (90, 3_000_000_000)]), 25)
        self.assertIsNone(figures.rate([]))

    def test_a_ratio_is_taken_within_rounds_so_that_drift_cancels(self):
        ours = [[1, 1, 1], [2, 2, 2], [4, 4, 4]]
        base = [[10, 10, 10], [20, 20, 20], [40, 40, 40]]
        self.assertAlmostEqual(figures.ratio(ours, base), 0.1)

    def test_one_disturbed_round_does_not_move_a_ratio(self):
        self.assertAlmostEqual(figures.ratio([[1], [50], [1]], [[10], [10], [10]]), 0.1)

    def test_a_round_without_values_is_left_out_of_a_ratio(self):
        self.assertAlmostEqual(figures.ratio([[1], [], [3]], [[10], [10], [10]]), 0.2)
        self.assertIsNone(figures.ratio([], []))

    def test_the_spread_is_p99_over_p50(self):
        self.assertEqual(figures.spread([10] * 98 + [30] * 2), 3)
        self.assertIsNone(figures.spread([]))

    def test_parts_are_of_equal_size_in_the_order_of_measuring(self):
        self.assertEqual(figures.parts([5, 1, 4, 2, 3, 9, 8], 3), [[5, 1], [4, 2], [3, 9]])
        self.assertEqual(figures.parts([1, 2], 3), [])

    def test_the_usual_spread_is_the_median_of_five_parts(self):
        calm, worse, worst = [10] * 98 + [20] * 2, [10] * 98 + [30] * 2, [10] * 98 + [500] * 2
        self.assertEqual(figures.usual_spread(calm + worst + worse + calm + worst), 3)
        self.assertEqual(figures.usual_spread(calm + worst + worse + calm + worst + [9999]), 3)
        self.assertIsNone(figures.usual_spread([1, 2, 3]))


class Documents(unittest.TestCase):
    def test_only_what_is_between_the_markers_is_replaced(self):
        old = f"before\n{report.BEGIN}\nold\nlines\n{report.END}\nbehind\n"
        self.assertEqual(report.between_markers(old, "new"), f"before\n{report.BEGIN}\nnew\n{report.END}\nbehind\n")

    def test_a_document_without_its_two_markers_is_refused(self):
        for wrong in ("", report.BEGIN, report.END, report.END + report.BEGIN, 2 * (report.BEGIN + report.END)):
            with self.subTest(wrong), self.assertRaises(ValueError):
                report.between_markers(wrong, "new")

    def test_what_could_not_be_measured_is_no_target_reached(self):
        ours = {"program": "hello", "peer": "ours", "void": None, "times_bare": 0.1, "p50_ms": 1, "p99_over_p50": None,
                "phases_ms": {"rest": 0.1, "queue": 0.1}, "runs_per_second": {1: 10.0}}
        bare = {**ours, "peer": "python3 -c", "p50_ms": 10, "runs_per_second": {1: 2.0}}
        found = {t[0]: t[3] for t in report.targets([ours, bare], None, {"paced_client_ms": 0.15}, "ours")}
        self.assertIs(found["hello: runs/s over bare python3's, 1 client"], True)
        self.assertIsNone(found["hello: runs/s over bubblewrap's, 1 client"])
        self.assertIs(found["hello: rest (HTTP, wire) + queue - client, p50 ms"], True)
        self.assertIsNone(found["hello: p99/p50 over bare python3's, median of five parts"])


    def test_the_plot_target_is_in_the_table_with_and_without_the_image(self):
        row = {"program": "plot", "peer": "ours, image python-data", "void": None, "times_bare": 0.19}
        for rows, reached in (([row], True), ([{**row, "times_bare": 0.21}], False), ([{**row, "void": "wrong"}], None),
                              ([], None)):
            with self.subTest(reached):
                self.assertEqual([t[3] for t in report.targets(rows, None, {}, "ours") if t[0].startswith("plot")],
                                 [reached])

    def test_a_network_that_was_not_measured_reaches_nothing(self):
        over = {"connect_ms": 0.9, "echo_ms": 1.2, "down_mb_s": 3.0}
        self.assertEqual([t[3] for t in report.network_targets({"over_slirp": over})], [True, False, True, None])
        rows = [dict(zip(("what", "measured", "wanted", "reached", "least"), t)) for t in report.network_targets({"over_slirp": over})]
        self.assertEqual([line.split("|")[3].strip() for line in report.target_table(rows).splitlines()[2:]],
                         ["<= 1", "<= 1", ">= 1", ">= 1"])

    def test_what_the_client_alone_waits_is_not_added_by_the_server(self):
        ours = {"phases_ms": {"rest": 0.4, "queue": 0.05}}
        self.assertAlmostEqual(report.added_ms(ours, {"paced_client_ms": 0.15}), 0.3)
        self.assertIsNone(report.added_ms(ours, {"paced_client_ms": None}))


class Programs(unittest.TestCase):
    def test_the_table_of_sales_has_sums_and_different_days(self):
        text = "day,region,units\n2024-01-01,south,2\n2024-01-02,east,5\n2024-01-01,south,40\n2024-01-03,south,0\n"
        self.assertEqual(programs.sales_table(text), "region,units,days\neast,5,1\nsouth,42,2\n")
        self.assertEqual(len(programs.sales(1000).splitlines()), 1001)
        self.assertEqual(programs.sales_table(programs.sales(1000)).count("\n"), 5)

    def test_what_a_file_begins_with_is_the_same_in_a_reply(self):
        program = programs.plot()
        self.assertEqual(program.begins(in_reply=False)[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(base64.b64decode(program.begins(in_reply=True)), program.begins(in_reply=False))
        self.assertEqual(program.body()["files"], [{"path": "sales.csv", "content": program.inputs[0][1]}])

    def test_every_program_prints_what_is_expected_of_it(self):
        for program in programs.all_programs(with_numpy=programs.has_modules("numpy"), cpu_ms=2):
            with self.subTest(program.name):
                self.assertEqual(programs.run_bare(program), program.expect)


if __name__ == "__main__":
    unittest.main()
