/* SPDX-License-Identifier: MIT-0 */
/* The tree along which a training step adds the gradients of its shards: node [begin, end) of n
 * shards is its left part plus its right one, the left part the largest power of two shards that
 * leaves one. Shards are walked in order, by one process or a range of them by each of several; a
 * sum is added to its left sibling as soon as both are there, so that the bits depend on n alone.
 * C11 and C++; graph/, too, reads it. */
#ifndef STINT_TREE_H
#define STINT_TREE_H

#include <stdint.h>

/* The control numbers that a step has: seed, steps done, rows that count, 0; and, with shards, the
 * shard's number, the sums that wait, how many of them it completes, 1 for the last one, and rows
 * of the whole batch that count. */
enum { STINT_CONTROLS = 9 };

/* Where the left sibling of node [begin, end) begins; -1: it is a left one itself, or the root. */
static inline int64_t stint_tree_left(int64_t begin, int64_t end, int64_t shards)
{
	const int64_t low = begin & -begin;
	return begin > 0 && (end == shards || end - begin == low) ? begin - low : -1;
}

/* Nodes that [begin, end), end < shards, comes to, and so sums that wait for what follows. Where
 * `from` is not NULL, each one's first shard, from the left: at most STINT_TREE_DEPTH. */
enum { STINT_TREE_DEPTH = 126 };
static inline int stint_tree_nodes(int64_t begin, int64_t end, int64_t *from)
{
	int n = 0;
	for (int64_t at = end; at > begin; n++) {
		int64_t step = at & -at;
		while (at - step < begin)
			step >>= 1;
		at -= step;
		if (from)
			from[n] = at;
	}
	for (int i = 0; from && i < n / 2; i++) {
		const int64_t left = from[i];
		from[i] = from[n - 1 - i];
		from[n - 1 - i] = left;
	}
	return n;
}

/* How many of the sums that wait shard `at` completes, in a walk that began with shard `begin`. */
static inline int stint_tree_joins(int64_t begin, int64_t at, int64_t shards)
{
	int n = 0;
	for (int64_t from = at; (from = stint_tree_left(from, at + 1, shards)) >= begin;)
		n++;
	return n;
}

/* The first shard of walk number `walk` of so many: each goes on up to the next one's first. */
static inline int64_t stint_tree_first(int64_t shards, int64_t walks, int64_t walk)
{
	return shards / walks * walk + shards % walks * walk / walks;
}

/* The nodes that this walk's shards come to, all there are when it is done; `from` as above, and
 * one more. */
static inline int stint_tree_roots(int64_t shards, int64_t walks, int64_t walk, int64_t *from)
{
	const int64_t begin = stint_tree_first(shards, walks, walk);
	const int64_t last = stint_tree_first(shards, walks, walk + 1) - 1;
	const int waiting = stint_tree_nodes(begin, last, from);
	const int joins = stint_tree_joins(begin, last, shards);
	if (from && joins == 0)
		from[waiting] = last;
	return waiting - joins + 1;
}

#endif
