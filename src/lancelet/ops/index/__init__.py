"""Operations on indexes: made, brought up to date, merged, moved along with rows, described and dropped."""
