"""The figures of the benchmark against values worked out by hand."""
import unittest

import figures
import programs


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


class Programs(unittest.TestCase):
    def test_every_program_prints_what_is_expected_of_it(self):
        for program in programs.all_programs(with_numpy=programs.has_numpy(), cpu_ms=2):
            with self.subTest(program.name):
                self.assertEqual(programs.run_bare(program), program.expect)


if __name__ == "__main__":
    unittest.main()
