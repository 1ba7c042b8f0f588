# A figure of a sweep over two keys: a coloured cell for each point. All positions are points of the
# sheet, from its upper left corner.

load programs.'/common.gp'
load programs.'/frame.gp'

set xrange [0:sheet_width]
set yrange [sheet_height:0]
unset tics
unset border
set label 1 x_title at (area_left + area_right) / 2.0, sheet_height - 14 center textcolor rgb text_colour
set label 2 y_title at 16, (area_top + area_bottom) / 2.0 center rotate by 90 textcolor rgb text_colour
set label 3 value_title at sheet_width - 14, (area_top + area_bottom) / 2.0 center rotate by 90 \
    textcolor rgb text_colour
if (gap_width > 0) {
    set style fill solid 1 border rgb 'white'
}
if (turn > 0) {
    plot folder.'/across.dat' using 1:2:3:4 with labels right rotate by turn textcolor rgb variable
} else {
    plot folder.'/across.dat' using 1:2:3:4 with labels center textcolor rgb variable
}
unset label
plot folder.'/cells.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable lw gap_width, \
     (has_hatch ? folder.'/hatch.dat' : '/dev/null') using 1:2:3:4:5 \
         with vectors nohead lc rgb variable lw 0.7, \
     (has_hatch ? folder.'/patches.dat' : '/dev/null') using 1:3:1:2:3:4:5 \
         with boxxyerror fs solid 1 noborder lc rgb variable, \
     folder.'/aligned.dat' using 1:2:3:4 with labels right textcolor rgb variable, \
     (has_numbers ? folder.'/numbers.dat' : '/dev/null') using 1:2:3:4 \
         with labels center font font(has_numbers ? number_font : font_size) textcolor rgb variable
unset multiplot
set output
